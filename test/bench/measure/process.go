package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Serving adds to a round the processor time that a server process took for each
// operation.
func Serving(pid int, run func() Round) Round {
	before, start := CPU(pid), time.Now()
	r := run()
	operations := r.Rate * time.Since(start).Seconds()
	r.Server = time.Duration(float64(CPU(pid)-before) / operations)
	return r
}

// CPU is the processor time that a process and its children have used. It counts
// in hundredths of a second, so a round had better last one.
func CPU(pid int) time.Duration {
	total := ticksOf(statOf(pid))
	others, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range others {
		other, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if stat := statOf(other); parentOf(stat) == pid {
			total += ticksOf(stat)
		}
	}
	const ticksPerSecond = 100 // USER_HZ on every Linux that Go runs on
	return time.Duration(total) * time.Second / ticksPerSecond
}

// Where proc(5) has them, counted from the state on.
const (
	statParent = 1
	statUser   = 11
	statSystem = 12
)

// ticksOf is user plus system time.
func ticksOf(stat []string) int64 { return number(stat, statUser) + number(stat, statSystem) }

func parentOf(stat []string) int { return int(number(stat, statParent)) }

func number(stat []string, at int) int64 {
	if len(stat) <= at {
		return 0
	}
	n, _ := strconv.ParseInt(stat[at], 10, 64)
	return n
}

// statOf is /proc/pid/stat from the state on: the name before it may hold
// anything. It is empty for a process that is gone.
func statOf(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}
