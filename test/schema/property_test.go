package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"
)

// odd are values that some field or other may stumble over.
var odd = []any{nil, "", " ", "a", "0", "1m", "/", "*", "ü", "\x00", "a\nb", "::ffff:1.2.3.4", "(", `\Q`, int64(0), int64(1), int64(-1), int64(1) << 53, 1.5, true, []any{}, []any{nil}, []any{""}, map[string]any{}, map[string]any{"a": nil}}

// letters are what texts are changed with.
var letters = []rune("aZ09 .-_:/*[]{}()|\\^$?#%'\"\n\x00üİｍ")

// mixer makes specs of rows' specs: each value comes from a field of that name in
// some row, good or bad, or is an odd one, or a text that is changed a little.
type mixer struct {
	specs  []map[string]any
	values map[string][]any
}

func newMixer(t *testing.T, rows []row) *mixer {
	m := &mixer{values: map[string][]any{}}
	for _, r := range rows {
		spec := tree(t, r.spec)
		m.collect(spec)
		if len(r.wrong) == 0 {
			m.specs = append(m.specs, spec)
		}
	}
	return m
}

// tree reads JSON as an API server does, whole numbers as such.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func (m *mixer) collect(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			m.values[name] = append(m.values[name], value)
			m.collect(value)
		}
	case []any:
		for _, item := range v {
			m.collect(item)
		}
	}
}

// spec draws a spec with some changes.
func (m *mixer) spec(t *rapid.T) map[string]any {
	spec := m.specs[rapid.IntRange(0, len(m.specs)-1).Draw(t, "spec")]
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		spec = m.changeFields(t, spec)
	}
	return spec
}

// change returns a value like v, which stands in a field of that name. It leaves v
// alone, because rows share their values.
func (m *mixer) change(t *rapid.T, name string, v any) any {
	if rapid.IntRange(0, 3).Draw(t, "how") == 0 {
		return m.value(t, name)
	}
	switch v := v.(type) {
	case map[string]any:
		return m.changeFields(t, v)
	case []any:
		return m.changeItems(t, name, v)
	case string:
		return changeLetters(t, v)
	}
	return m.value(t, name)
}

func (m *mixer) value(t *rapid.T, name string) any {
	if known := m.values[name]; len(known) > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		return known[rapid.IntRange(0, len(known)-1).Draw(t, "value")]
	}
	return rapid.SampledFrom(odd).Draw(t, "odd")
}

func (m *mixer) changeFields(t *rapid.T, fields map[string]any) map[string]any {
	changed := maps.Clone(fields)
	there := slices.Sorted(maps.Keys(fields))
	switch how := rapid.IntRange(0, 9).Draw(t, "field"); {
	case how == 0 || len(there) == 0:
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.values))).Draw(t, "new")
		changed[name] = m.value(t, name)
	case how == 1:
		delete(changed, rapid.SampledFrom(there).Draw(t, "gone"))
	default:
		name := rapid.SampledFrom(there).Draw(t, "other")
		changed[name] = m.change(t, name, fields[name])
	}
	return changed
}

func (m *mixer) changeItems(t *rapid.T, name string, items []any) []any {
	changed := slices.Clone(items)
	if len(items) == 0 {
		return changed
	}
	i := rapid.IntRange(0, len(items)-1).Draw(t, "item")
	switch rapid.IntRange(0, 4).Draw(t, "list") {
	case 0:
		return append(changed, items[i])
	case 1:
		return slices.Delete(changed, i, i+1)
	}
	changed[i] = m.change(t, name, items[i])
	return changed
}

func changeLetters(t *rapid.T, text string) string {
	runes := []rune(text)
	at := rapid.IntRange(0, len(runes)).Draw(t, "at")
	letter := rapid.SampledFrom(letters).Draw(t, "letter")
	if at < len(runes) && rapid.Bool().Draw(t, "replace") {
		runes[at] = letter
		return string(runes)
	}
	return string(slices.Insert(runes, at, letter))
}

func TestServerAndEngineAgreeOnRandomSpecs(t *testing.T) {
	for kind, rows := range map[string][]row{
		"RateLimitPolicy": slices.Concat(policyRows(), ruleRows(), matchRows(), keyRows()),
		"RedisBackend":    backendRows(),
	} {
		t.Run(kind, func(t *testing.T) {
			both, m := judge(t, kind), newMixer(t, rows)
			taken, refused := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				for range 5 {
					text, err := json.Marshal(m.spec(rt))
					if err != nil {
						rt.Fatal(err)
					}
					server := both.server(t, string(text))
					_, engine := both.engine(string(text))
					if (server == nil) != (engine == nil) {
						rt.Fatalf("a server says %v\ninternal/policy says %v\nof %s", server, engine, text)
					}
					if engine == nil {
						taken++
					} else {
						refused++
					}
				}
			})
			if all := taken + refused; taken < all/20 || refused < all/20 {
				t.Errorf("%d specs taken and %d refused: the mix says little", taken, refused)
			}
		})
	}
}
