//go:build faults

package faults

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/enforcer/redisstore"
)

const (
	// budget is what a policy's backend allows for a decision, and grace what a
	// decision may take longer.
	budget = 50 * time.Millisecond
	grace  = 10 * time.Millisecond
	// healing is how soon after a fault decisions must be exact again.
	healing = 5 * time.Second
	// lasting is how long a fault stays that does not end by itself.
	lasting = 3 * time.Second
	// calm is how long all is well before and after the fault.
	calm = time.Second
)

// trial is one line of the matrix.
type trial struct {
	fault string
	// begin starts the servers, and says how to break them.
	begin func(t *testing.T) *site
	// hurts says what callers notice of it.
	hurts damage
	// loses tells that counters may be lost, or come back as they were earlier.
	loses bool
	// delivers tells that the servers count everything that reaches them.
	delivers bool
}

// damage is what becomes of decisions during a fault.
type damage uint8

const (
	someFail damage = iota // or else the fault was none
	noneFail
	mayFail
)

// site is where a trial happens.
type site struct {
	config redisstore.Config
	// servers is how many servers count, in the course of the trial.
	servers int
	// strike brings the fault about. It returns what ends it, or nil if the fault
	// is over when strike returns.
	strike func() (mend func())
	// counters reads all counters, by client.
	counters func() map[string]int64
	// delivered is how many requests have reached the servers so far. It is nil
	// where nothing looks.
	delivered func() int64
	// spares tells whose decisions the fault must not touch. It is nil where all
	// may be touched.
	spares func(client string) bool
	// redirects is how often the servers have sent somebody elsewhere so far. It
	// is nil where nobody does.
	redirects func() int64
}

// run goes through all trials of a topology with both failure modes.
func run(t *testing.T, trials []trial) {
	for _, tr := range trials {
		t.Run(tr.fault, func(t *testing.T) {
			for _, mode := range []v1alpha1.FailureMode{v1alpha1.FailureAllow, v1alpha1.FailureDeny} {
				t.Run(string(mode), func(t *testing.T) { tr.run(t, mode) })
			}
		})
	}
}

func (tr trial) run(t *testing.T, mode v1alpha1.FailureMode) {
	s := tr.begin(t)
	e := newEnforcer(t, s.config, mode)
	e.awaitExact(t)
	l := start(e, newWitness(t))
	l.goOn(calm)
	l.stop()
	begun := readBooks(s, e)
	before := used()

	l = start(e, newWitness(t))
	l.enter(struck)
	if mend := s.strike(); mend != nil {
		l.goOn(lasting)
		mend()
	}
	l.enter(mended)
	healed := e.awaitExact(t)
	l.enter(healthy)
	redirected := s.countRedirects()
	l.goOn(calm)
	l.stop()
	redirected = s.countRedirects() - redirected

	l.judgeSpeed(t)
	l.judgeOutcomes(t, tr, s)
	l.judgeRedirects(t, redirected)
	l.judgeBooks(t, tr, s, begun)
	t.Logf("%s; exact %v after the fault", l.summary(), healed.Round(time.Millisecond))
	before.compare(t, s.servers)
}

func (s *site) countRedirects() int64 {
	if s.redirects == nil {
		return 0
	}
	return s.redirects()
}
