package schema

func ruleRows() []row {
	rows := []row{
		inPolicy.bad("no rules", "rules: []", "rules"),
		inPolicy.bad("rules left out", "rules: null", "rules"),
		inPolicy.bad("rules as an object", "rules: {r: {limit: 1}}", "rules"),
		inPolicy.good("32 rules", "rules: "+many(32, "{name: r%d, limit: 1, window: 1m}")),
		inPolicy.bad("33 rules", "rules: "+many(33, "{name: r%d, limit: 1, window: 1m}"), "rules"),
		inPolicy.bad("a name twice", "rules: [{name: a, limit: 1, window: 1m}, {name: b, limit: 1, window: 1m}, {name: a, limit: 2, window: 1h}]", "rules[2].name"),
		inPolicy.bad("two rules without name", "rules: [{limit: 1, window: 1m}, {limit: 1, window: 1m}]", "rules[0].name", "rules[1].name"),
		inPolicy.bad("a rule with nothing", "rules: [{}]", "rules[0].name", "rules[0].limit", "rules[0].window"),
		inPolicy.bad("a rule that is null", "rules: [null]", "rules[0].name", "rules[0].limit", "rules[0].window"),
		inRule.bad("the reserved name", "name: override", "name"),
		inRule.good("a name that begins like it", "name: override-1"),
		inRule.bad("an empty name", "name: ''", "name"),
		inRule.bad("a name in upper case", "name: PerUser", "name"),
		inRule.bad("a name with an underscore", "name: per_user", "name"),
		inRule.bad("a name with a brace", "name: 'a}'", "name"),
		inRule.bad("a name that ends in a dash", "name: a-", "name"),
		inRule.good("a name of 63 characters", "name: "+long(63)),
		inRule.bad("a name of 64 characters", "name: "+long(64), "name"),
		inRule.bad("a name that is a number", "name: 5", "name"),
		inRule.bad("an unknown field", "burst: 5", "burst"),
		inRule.good("the algorithm", "algorithm: FixedWindow"),
		inRule.bad("another algorithm", "algorithm: TokenBucket", "algorithm"),
		inRule.bad("an empty algorithm", "algorithm: ''", "algorithm"),

		inRule.good("a limit of 0 blocks", "limit: 0"),
		inRule.good("the highest limit", "limit: 9007199254740991"),
		inRule.bad("2^53", "limit: 9007199254740992", "limit"),
		inRule.bad("2^53+1", "limit: 9007199254740993", "limit"),
		inRule.bad("2^63-1", "limit: 9223372036854775807", "limit"),
		inRule.bad("2^63", "limit: 9223372036854775808", "limit"),
		inRule.bad("a limit of -1", "limit: -1", "limit"),
		inRule.bad("a limit as text", "limit: '100'", "limit"),
		inRule.bad("a limit with a unit", "limit: 100/m", "limit"),
		inRule.bad("a limit with a fraction", "limit: 1.5", "limit"),
		inRule.bad("no limit", "limit: null", "limit"),
		inRule.bad("a limit that is true", "limit: true", "limit"),
		inRule.bad("unlimited", "limit: unlimited", "limit"),
		inRule.bad("no window", "window: null", "window"),
		inRule.bad("a window that is a number", "window: 60", "window"),
		inRule.bad("several mistakes in one rule", "name: A, limit: -1, window: 1w", "name", "limit", "window"),
	}
	for _, text := range []string{"1s", "60s", "1m", "90m", "24h", "1d", "7d", "30d", "366d", "8784h", "527040m", "31622400s"} {
		rows = append(rows, inRule.good("the window "+text, "window: "+text))
	}
	for _, text := range []string{"", "0s", "-5s", "+5s", "1.5h", "60", "1mo", "1w", "1M", "1 m", " 1m", "1h30m", "01m", "367d", "8785h", "527041m", "31622401s", "99999999d", "100000000s", "m", "PT1M", "1ｍ", "１m", "1m\\n"} {
		rows = append(rows, inRule.bad("the window "+text, `window: "`+text+`"`, "window"))
	}
	return rows
}

func matchRows() []row {
	rows := []row{
		inMatch.good("everything", ""),
		inRule.good("a match that is null", "match: null"),
		inMatch.good("empty lists", "hosts: [], methods: [], paths: [], headers: [], clientCIDRs: [], descriptor: []"),
		inMatch.good("all at once", "hosts: [a], methods: [GET], paths: [{type: Prefix, value: /}], headers: [{name: a, type: Present}], clientCIDRs: ['::/0'], descriptor: [{key: a}]"),
		inMatch.bad("an unknown field", "path: /api", "path"),
		inMatch.bad("hosts as a text", "hosts: shop.example.com", "hosts"),
		inMatch.bad("a host twice", "hosts: [a, b, a]", "hosts[2]"),
		inMatch.good("16 hosts", "hosts: "+many(16, "h%d")),
		inMatch.bad("17 hosts", "hosts: "+many(17, "h%d"), "hosts"),
		inMatch.bad("a host of 254 characters", "hosts: ["+long(254)+"]", "hosts[0]"),
		inMatch.good("methods of all kinds", "methods: [GET, get, PROPFIND, M-SEARCH, VERSION_CONTROL]"),
		inMatch.bad("an empty method", "methods: ['']", "methods[0]"),
		inMatch.bad("a method that is a star", "methods: ['*']", "methods[0]"),
		inMatch.bad("a method with a blank", "methods: ['GET POST']", "methods[0]"),
		inMatch.bad("a method twice", "methods: [GET, GET]", "methods[1]"),
		inMatch.bad("17 methods", "methods: "+many(17, "M%d"), "methods"),
		inMatch.bad("a method that is too long", "methods: ["+long(33)+"]", "methods[0]"),
		inMatch.good("a range with host bits and an address", "clientCIDRs: [192.168.11.20/24, 8.8.8.8]"),
		inMatch.good("a range twice", "clientCIDRs: [8.8.8.8, 8.8.8.8]"),
		inMatch.bad("a range that is a name", "clientCIDRs: [office]", "clientCIDRs[0]"),
		inMatch.bad("65 ranges", "clientCIDRs: "+many(65, "10.0.0.%d"), "clientCIDRs"),
		inMatch.good("descriptors", "descriptor: [{key: user}, {key: tier, value: gold}, {key: empty, value: ''}]"),
		inMatch.bad("a descriptor without key", "descriptor: [{value: gold}]", "descriptor[0].key"),
		inMatch.bad("a descriptor with an empty key", "descriptor: [{key: ''}]", "descriptor[0].key"),
		inMatch.bad("a descriptor whose key is too long", "descriptor: [{key: "+long(129)+"}]", "descriptor[0].key"),
		inMatch.good("a descriptor whose value is long", "descriptor: [{key: a, value: "+long(256)+"}]"),
		inMatch.bad("a descriptor whose value is too long", "descriptor: [{key: a, value: "+long(257)+"}]", "descriptor[0].value"),
		inMatch.bad("17 descriptors", "descriptor: "+many(17, "{key: k%d}"), "descriptor"),
		inMatch.bad("17 paths", "paths: "+many(17, "{type: Exact, value: /%d}"), "paths"),
		inMatch.bad("17 headers", "headers: "+many(17, "{name: h%d, type: Present}"), "headers"),
	}
	for _, text := range []string{"shop.example.com", "*.example.com", "localhost", "a_b.example", "xn--bcher-kva.example", "192.0.2.7", "[2001:db8::1]", "[::ffff:1.2.3.4]"} {
		rows = append(rows, inMatch.good("the host "+text, "hosts: ['"+text+"']"))
	}
	for _, text := range []string{"", "Shop.example.com", "shop.example.com:8080", "https://shop.example.com", "*", "*.", "a.*.com", "*a.com", "**.a.com", ".a.com", "a.com.", "a..com", "-a.com", "a-.com", "bücher.example", "2001:db8::1", "[2001:DB8::1]", "a b", "a/b"} {
		rows = append(rows, inMatch.bad("the host "+text, "hosts: ['"+text+"']", "hosts[0]"))
	}
	return append(append(rows, pathRows()...), headerRows()...)
}

// patterns are regular expressions; maxPattern is how long one can be.
const maxPattern = 256

var (
	goodPatterns = []string{"/api/v[0-9]+", "a|b", "", "(?i)/a", `\d+\.json`, `[^/]*`, "(/a)+", "^/a$", long(maxPattern)}
	badPatterns  = []string{"(", ")", "[a", `a\`, "*", "a**", "(?=a)", `\1`, "a{1001}", "(?P<n", `\Qa`, "a)|(b", "a)(b", `\x{110000}`, long(maxPattern + 1)}
)

func pathRows() []row {
	rows := []row{
		inPath.good("exact", "type: Exact, value: /a"),
		inPath.good("prefix", "type: Prefix, value: /"),
		inPath.good("escapes and other letters", "type: Exact, value: '/%C3%BC/ü'"),
		inPath.bad("no type", "value: /a", "type"),
		inPath.bad("no such type", "type: Suffix, value: x", "type"),
		inPath.bad("no value", "type: Exact", "value"),
		inPath.bad("an empty value", "type: Exact, value: ''", "value"),
		inPath.bad("an empty expression", "type: RegularExpression, value: ''", "value"),
		inPath.bad("neither", "", "type", "value"),
		inPath.bad("a path without slash", "type: Prefix, value: api", "value"),
		inPath.bad("a path with a query", "type: Exact, value: '/a?b=c'", "value"),
		inPath.bad("a path with a fragment", "type: Exact, value: '/a#b'", "value"),
		inPath.bad("a whole URL", "type: Exact, value: 'https://a/b'", "value"),
		inPath.good("a path of 1024 characters", "type: Exact, value: /"+long(1023)),
		inPath.bad("a path of 1025 characters", "type: Exact, value: /"+long(1024), "value"),
		inPath.bad("a wrong path that is too long as well", "type: Exact, value: "+long(1025), "value"),
		inPath.bad("an expression that only a path could be as long as", "type: RegularExpression, value: "+long(1024), "value"),
		inPath.bad("a path as a text", "type: null, value: null, path: /a", "path"),
		inMatch.bad("paths as texts", "paths: [/a]", "paths"),
	}
	for _, text := range goodPatterns {
		if text != "" {
			rows = append(rows, inPath.good("the expression "+text, "type: RegularExpression, value: '"+text+"'"))
		}
	}
	for _, text := range badPatterns {
		rows = append(rows, inPath.bad("the expression "+text, "type: RegularExpression, value: '"+text+"'", "value"))
	}
	return rows
}

func headerRows() []row {
	rows := []row{
		inHeader.good("exact", "name: X-Tier, type: Exact, value: gold"),
		inHeader.good("an empty value", "name: X-Tier, type: Exact, value: ''"),
		inHeader.good("present", "name: x-tier, type: Present"),
		inHeader.good("absent", "name: x-tier, type: Absent"),
		inHeader.bad("exact without value", "name: a, type: Exact", "value"),
		inHeader.bad("an expression without value", "name: a, type: RegularExpression", "value"),
		inHeader.bad("present with a value", "name: a, type: Present, value: x", "value"),
		inHeader.bad("absent with an empty value", "name: a, type: Absent, value: ''", "value"),
		inHeader.bad("no name", "type: Present", "name"),
		inHeader.bad("an empty name", "name: '', type: Present", "name"),
		inHeader.bad("a name with a blank", "name: 'X Tier', type: Present", "name"),
		inHeader.bad("a name of HTTP/2's own", "name: ':path', type: Present", "name"),
		inHeader.bad("a name that is too long", "name: "+long(129)+", type: Present", "name"),
		inHeader.bad("no type", "name: a, value: b", "type"),
		inHeader.bad("no such type", "name: a, type: Contains, value: b", "type"),
		inHeader.bad("a value that is a number", "name: a, type: Exact, value: 5", "value"),
		inHeader.good("a value of 1024 characters, not bytes", "name: a, type: Exact, value: "+long(1023)+"ü"),
		inHeader.bad("a value of 1025 characters", "name: a, type: Exact, value: "+long(1025), "value"),
	}
	for _, text := range goodPatterns {
		rows = append(rows, inHeader.good("the expression "+text, "name: a, type: RegularExpression, value: '"+text+"'"))
	}
	for _, text := range badPatterns {
		rows = append(rows, inHeader.bad("the expression "+text, "name: a, type: RegularExpression, value: '"+text+"'", "value"))
	}
	return rows
}

func keyRows() []row {
	rows := []row{
		inRule.good("no key", "key: []"),
		inRule.good("8 parts", "key: "+many(8, "{type: Header, name: h%d}")),
		inRule.bad("9 parts", "key: "+many(9, "{type: Header, name: h%d}"), "key"),
		inRule.good("one part twice", "key: [{type: ClientIP}, {type: ClientIP}]"),
		inRule.bad("a key as a text", "key: ClientIP", "key"),
		inRule.bad("parts as texts", "key: [ClientIP]", "key"),
		inKey.bad("no type", "name: X-User", "type"),
		inKey.bad("no such type", "type: JWTClaim, name: sub", "type"),
		inKey.good("a trusted header", "type: Header, name: X-User, trustedFrom: Proxies, onMissing: Skip, hash: true"),
		inKey.good("not hashed", "type: Header, name: X-User, trustedFrom: Anyone, hash: false"),
		inKey.bad("hash as a text", "type: Header, name: a, hash: 'true'", "hash"),
		inKey.bad("no such sender", "type: Header, name: a, trustedFrom: Nobody", "trustedFrom"),
		inKey.bad("no such sender for a cookie either", "type: Cookie, name: a, trustedFrom: Nobody", "trustedFrom"),
		inKey.bad("an empty sender", "type: Header, name: a, trustedFrom: ''", "trustedFrom"),
		inKey.bad("a cookie from proxies", "type: Cookie, name: a, trustedFrom: Proxies", "trustedFrom"),
		inKey.bad("no such onMissing", "type: Header, name: a, onMissing: Fail", "onMissing"),
		inKey.bad("no such onMissing where none is", "type: ClientIP, onMissing: Fail", "onMissing"),
		inKey.bad("an empty onMissing", "type: Header, name: a, onMissing: ''", "onMissing"),
		inKey.good("the first segment", "type: PathSegment, index: 0"),
		inKey.good("the last segment", "type: PathSegment, index: 31, onMissing: Shared"),
		inKey.bad("segment 32", "type: PathSegment, index: 32", "index"),
		inKey.bad("segment -1", "type: PathSegment, index: -1", "index"),
		inKey.bad("no segment", "type: PathSegment", "index"),
		inKey.bad("a segment by name", "type: PathSegment, index: 1, name: id", "name"),
		inKey.bad("a header by index", "type: Header, name: a, index: 1", "index"),
		inKey.bad("a header by an index out of bounds", "type: Header, name: a, index: 99", "index"),
		inKey.good("a parameter of any name", "type: QueryParam, name: 'filter[user id]'"),
		inKey.good("an entry of any name", "type: Descriptor, name: 'user id'"),
		inKey.bad("a name that is too long", "type: QueryParam, name: "+long(129), "name"),
		inKey.good("a name of 128 characters, not bytes", "type: QueryParam, name: "+long(127)+"ü"),
		inKey.bad("an unknown field", "type: ClientIP, prefix: 24", "prefix"),
		inKey.bad("an unknown field of a type to come", "type: Header, name: a, jwtClaim: {name: sub}", "jwtClaim"),
	}
	for _, kind := range []string{"ClientIP", "Path", "Host", "Method"} {
		rows = append(rows,
			inKey.good(kind, "type: "+kind),
			inKey.good("hashed "+kind, "type: "+kind+", hash: true"),
			inKey.bad(kind+" with a name", "type: "+kind+", name: a", "name"),
			inKey.bad(kind+" with an empty name", "type: "+kind+", name: ''", "name"),
			inKey.bad(kind+" with an index", "type: "+kind+", index: 0", "index"),
			inKey.bad(kind+" that is missing", "type: "+kind+", onMissing: Skip", "onMissing"),
			inKey.bad(kind+" from proxies", "type: "+kind+", trustedFrom: Proxies", "trustedFrom"))
	}
	for _, kind := range []string{"Header", "Cookie", "QueryParam", "Descriptor"} {
		rows = append(rows,
			inKey.good(kind, "type: "+kind+", name: a-1"),
			inKey.bad(kind+" without name", "type: "+kind, "name"),
			inKey.bad(kind+" with an empty name", "type: "+kind+", name: ''", "name"))
		for _, missing := range []string{"ClientIP", "Skip", "Deny", "Shared"} {
			rows = append(rows, inKey.good(kind+" or "+missing, "type: "+kind+", name: a, onMissing: "+missing))
		}
	}
	for _, kind := range []string{"Header", "Cookie"} {
		for _, name := range []string{"a b", "a=b", "a;b", "ü", "a:b", "a\\n"} {
			rows = append(rows, inKey.bad(kind+" named "+name, "type: "+kind+`, name: "`+name+`"`, "name"))
		}
		rows = append(rows, inKey.good(kind+" of odd letters", "type: "+kind+`, name: "!#$%&'*+.^_|~-"`))
	}
	return rows
}
