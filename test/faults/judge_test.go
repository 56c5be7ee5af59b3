//go:build faults

package faults

import "testing"

// judgeSpeed allows for what the machine itself was late.
func (l *load) judgeSpeed(t *testing.T) {
	t.Helper()
	took := l.took()
	if len(took) == 0 {
		t.Error("the fault was over before a request came")
		return
	}
	allowed := budget + grace + l.witness.worst(struck, mended)
	if p99 := took[len(took)*99/100]; p99 > allowed {
		t.Errorf("1 of 100 decisions takes %v or more, where %v is allowed", p99, allowed)
	}
}

func (l *load) judgeOutcomes(t *testing.T, tr trial, s *site) {
	t.Helper()
	for i := range l.clients {
		if wrong := l.clients[i].wrong; wrong != "" {
			t.Errorf("client %s got %s", l.clients[i].address, wrong)
			break
		}
	}
	if _, failed := l.sum(struck); tr.hurts == someFail && failed == 0 {
		t.Error("no decision fails, so there was no fault")
	}
	if tr.hurts == noneFail {
		l.mustNotFail(t, struck, everyone, "that the fault should not touch")
	}
	if s.spares != nil {
		l.mustNotFail(t, struck, s.spares, "on servers that are well")
	}
	l.mustNotFail(t, healthy, everyone, "after they were exact again")
}

func everyone(string) bool { return true }

// mustNotFail looks at the decisions of some clients in a phase. It excuses a
// machine that stood still for half a budget.
func (l *load) mustNotFail(t *testing.T, p phase, who func(client string) bool, which string) {
	t.Helper()
	var failed int64
	for i := range l.clients {
		if c := &l.clients[i]; who(c.address.String()) {
			failed += c.failed[p]
		}
	}
	switch {
	case failed == 0:
	case l.witness.worst(p) > budget/2:
		t.Logf("%d decisions fail %s; the machine stood still for %v", failed, which, l.witness.worst(p))
	default:
		t.Errorf("%d decisions fail %s", failed, which)
	}
}

// judgeRedirects looks at the time when all is well again.
func (l *load) judgeRedirects(t *testing.T, redirects int64) {
	t.Helper()
	if decided, _ := l.sum(healthy); redirects > decided {
		t.Errorf("%d redirects for %d decisions when all was well again", redirects, decided)
	}
}
