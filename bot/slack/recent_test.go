package slack

import "testing"

func TestRecentRemembersTheLastNames(t *testing.T) {
	r := newRecent(2)
	if !r.add("a") || r.add("a") {
		t.Error("a name is new once")
	}
	r.add("b")
	r.add("c")
	if r.has("a") || !r.has("b") || !r.has("c") {
		t.Error("the oldest of three names goes, and no other")
	}
}

func TestANameThatWasTakenIsRememberedAnewForAsLongAsAny(t *testing.T) {
	r := newRecent(2)
	r.add("a")
	if !r.take("a") || r.take("a") || r.has("a") {
		t.Error("a name is taken once")
	}
	r.add("a")
	r.add("b")
	if !r.has("a") || !r.has("b") {
		t.Errorf("there is room for two, and remembered are a: %v, b: %v", r.has("a"), r.has("b"))
	}
}
