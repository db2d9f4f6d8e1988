package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nudge/bot/bottest/discordtest"
)

// host is a den in which everybody is served: so many people, by their ids.
func host(t *testing.T, options discordtest.Options, people int) (d *den, users []string) {
	t.Helper()
	var allow []string
	for i := range people {
		users = append(users, fmt.Sprint(2000+i))
		allow = append(allow, fmt.Sprintf("%q", "discord:"+users[i]))
	}
	d = newDen(t, options, allow...)
	for i, user := range users {
		d.discord.AddUser(discordtest.User{ID: user, Name: fmt.Sprint("Person ", i)})
	}
	return d, users
}

// answered waits until all that is wanted was said. What was found is not looked for again.
func (d *den) answered(what string, want map[string]string) {
	d.Helper()
	left := maps.Clone(want)
	if !d.discord.Await(patience, func() bool {
		maps.DeleteFunc(left, func(answer, in string) bool { return d.answers(map[string]string{answer: in})[answer] > 0 })
		return len(left) == 0
	}) {
		d.Fatalf("%s, but for %v", what, left)
	}
}

// answers are how often the bot has said what is wanted, by what that is. want says where.
func (d *den) answers(want map[string]string) map[string]int {
	got := map[string]int{}
	for answer, channel := range want {
		for _, m := range d.discord.ByBot(channel) {
			if strings.Contains(discordtest.Read(m.Text), answer) {
				got[answer]++
			}
		}
	}
	return got
}

// TestDiscordLoad lets many people write at once, in direct messages and in channels, while the link breaks and Discord
// refuses calls, loses answers, and keeps to its limits; with NUDGE_LOAD two hundred, while the link breaks in all
// ways. Everything is answered once.
func TestDiscordLoad(t *testing.T) {
	t.Parallel()
	people, channels := 200, 40
	if os.Getenv("NUDGE_LOAD") == "" {
		people, channels = 50, 10
	}
	d, users := host(t, discordtest.Options{Limits: true, Beat: 2 * time.Second}, people)
	chance := rand.New(rand.NewPCG(1, 2)) // called under the fake's lock
	d.discord.Disturb(func(route string, _ int) *discordtest.Fault {
		p := chance.Float64()
		switch {
		case route == "gateway" || route == "command.create" || p > 0.06:
			return nil
		case p > 0.04:
			return &discordtest.Fault{RetryAfter: 200 * time.Millisecond}
		case p > 0.02:
			return &discordtest.Fault{Status: 502, Done: true}
		}
		return &discordtest.Fault{Cut: true, Done: p > 0.01}
	})
	d.start()
	d.linked(1)
	want := map[string]string{} // answer → channel
	var mu sync.Mutex
	var talking sync.WaitGroup
	for i, user := range users {
		talking.Go(func() {
			d.discord.Say(user, discordtest.DM(user), fmt.Sprintf("write direct-%d.md saying x", i))
			mu.Lock()
			want[fmt.Sprintf(`"direct-%d.md"`, i)] = discordtest.DM(user)
			mu.Unlock()
			if i >= channels {
				return
			}
			in := fmt.Sprint(3000 + i)
			d.discord.AddChannel(in)
			thread, _ := d.discord.Say(user, in, fmt.Sprintf("<@%s> write shared-%d.md saying x", discordtest.Bot, i))
			mu.Lock()
			want[fmt.Sprintf(`"shared-%d.md"`, i)] = thread
			mu.Unlock()
		})
	}
	ends := []func(){
		d.discord.Drop, func() { d.discord.Op(7, nil) }, func() { d.discord.Op(9, true) },
		func() { d.discord.Shut(4000) }, func() { d.discord.Op(1, nil) }, func() { d.discord.Shut(4008) },
	}
	if os.Getenv("NUDGE_LOAD") == "" {
		ends = ends[:1] // each is waited for longer than the one before
	}
	for _, end := range ends {
		eventually(t, "there is a link", d.discord.Linked)
		end()
	}
	talking.Wait()
	d.answered("all are answered", want)
	// The session is lost, and everybody who is known writes again before there is another.
	d.discord.Op(9, false)
	for i, user := range users[:20] {
		d.discord.Say(user, discordtest.DM(user), fmt.Sprintf("write again-%d.md saying x", i))
		want[fmt.Sprintf(`"again-%d.md"`, i)] = discordtest.DM(user)
	}
	d.answered("what was said without a session is answered", want)
	d.ended(syscall.SIGINT)
	for answer, n := range d.answers(want) {
		if n != 1 {
			t.Errorf("in %s %s was said %d times", want[answer], answer, n)
		}
	}
}

// TestDiscordAnswersAtOnce lets 64 people write at the same moment, under Discord's limits: nobody waits for another's
// conversation, and Discord refuses nothing.
func TestDiscordAnswersAtOnce(t *testing.T) {
	const people = 64
	d, users := host(t, discordtest.Options{Limits: true, Beat: 40 * time.Second}, people)
	d.start()
	d.linked(1)
	best, rounds := time.Hour, 1
	if os.Getenv("NUDGE_LOAD") != "" {
		rounds = 3
	}
	for range rounds {
		before := map[string]int{}
		for _, user := range users {
			before[user] = len(d.discord.ByBot(discordtest.DM(user)))
		}
		began := time.Now()
		for _, user := range users {
			d.discord.Say(user, discordtest.DM(user), "list files")
		}
		d.discord.Await(patience, func() bool {
			return !slices.ContainsFunc(users, func(user string) bool { return len(d.discord.ByBot(discordtest.DM(user))) <= before[user] })
		})
		best = min(best, time.Since(began))
	}
	t.Logf("%d conversations were answered within %s", people, best)
	if os.Getenv("NUDGE_LOAD") != "" && best > 1500*time.Millisecond {
		t.Errorf("it took %s", best)
	}
	for _, c := range d.discord.Calls("") {
		if c.Status == 429 {
			t.Errorf("%s %s was refused", c.Method, c.Path)
		}
	}
}
