package schedule

// A model whose provider accepts neither the key nor the account would refuse every woken run: after the first, nobody is
// woken until that is mended. It is not kept: a program that is started anew asks once again.

// Mended lets heartbeats wake people again after a run was refused ([Ended.Refused]): somebody got an answer.
func (c *Clock) Mended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = ""
}

// refusal is why nobody is woken; "" when people are.
func (c *Clock) refusal() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// noteRefusal remembers that a run was refused, and gives what the owners must hear, which they do of the first.
func (c *Clock) noteRefusal(runs []run) (tell string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range runs {
		if !r.ended.Refused || c.refused != "" {
			continue
		}
		c.refused = clip(r.ended.Reason, maxReason)
		return "its run was refused, so that no heartbeat wakes anybody until somebody gets an answer in a conversation or Nudge is started anew: " + c.refused
	}
	return ""
}
