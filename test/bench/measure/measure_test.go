package measure

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		name   string
		sorted []time.Duration
		p      int
		want   time.Duration
	}{
		{"nothing was measured", nil, 99, 0},
		{"one operation is every percentile", hundred[:1], 50, 1},
		{"half of a hundred", hundred, 50, 50},
		{"all but one of a hundred", hundred, 99, 99},
		{"of few, the 99th is the slowest", hundred[:10], 99, 10},
	} {
		if got := percentile(c.sorted, c.p); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestContendersTakeTurns(t *testing.T) {
	var order string
	rates := []float64{3, 100, 2}
	contender := func(name string) *Contender {
		turn := 0
		return &Contender{Name: name, Run: func() Round {
			order += name
			turn++
			return Round{Rate: rates[turn-1], P50: time.Duration(turn)}
		}}
	}
	a, b := contender("a"), contender("b")
	Alternate(len(rates), a, b)
	if order != "abbaab" {
		t.Errorf("order %s, want turns", order)
	}
	if diff := cmp.Diff(Round{Rate: 3, P50: 2}, a.Median()); diff != "" {
		t.Errorf("median, -want +got:\n%s", diff)
	}
}

func TestGainIsTakenRoundByRound(t *testing.T) {
	a, b := &Contender{}, &Contender{}
	for i := range 24 {
		disturbed := float64(i + 1)
		a.rounds = append(a.rounds, Round{Rate: disturbed * float64(100+i)})
		b.rounds = append(b.rounds, Round{Rate: disturbed * 100})
	}
	if got, want := a.Over(b), (Gain{1.07, 1.12, 1.16}); got.String() != want.String() {
		t.Errorf("gain %v, want %v", got, want)
	}
}

func TestTableAlignsItsColumns(t *testing.T) {
	table := NewTable("speed", "through", "a second", "p50")
	table.Row("µ", 12345.6, 1500*time.Nanosecond)
	table.Row("longer name", 1.234, 150*time.Nanosecond)
	want := "speed\n" +
		"  through      a second     p50\n" +
		"  µ               12346  1.5 µs\n" +
		"  longer name      1.23  150 ns\n"
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadCountsEachOperation(t *testing.T) {
	counts := make([]int, 3)
	r := Load(t, len(counts), 0, func(i int) func() error {
		return func() error { counts[i]++; return nil }
	})
	if diff := cmp.Diff([]int{1, 1, 1}, counts); diff != "" {
		t.Errorf("operations by caller, -want +got:\n%s", diff)
	}
	if r.Rate <= 0 || r.P99 < r.P50 {
		t.Errorf("round %+v", r)
	}
}

func TestWorkerStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	w := &worker{do: func() error { return broken }}
	w.work(time.Now().Add(time.Hour))
	if !errors.Is(w.err, broken) || len(w.took) != 0 {
		t.Errorf("error %v after %d operations", w.err, len(w.took))
	}
}

func TestStatOfThisProcess(t *testing.T) {
	if got := parentOf(statOf(os.Getpid())); got != os.Getppid() {
		t.Errorf("parent %d, want %d", got, os.Getppid())
	}
	if gone := statOf(1 << 30); gone != nil {
		t.Errorf("a process that is not there: %q", gone)
	}
}
