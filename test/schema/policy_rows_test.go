package schema

func policyRows() []row {
	rows := []row{
		inPolicy.good("a selector alone", ""),
		inPolicy.good("a domain alone", "selector: null, domain: shop"),
		inPolicy.good("both", "domain: Shop.v1_a-b"),
		inPolicy.bad("neither selector nor domain", "selector: null", ""),
		inPolicy.bad("an empty domain", "domain: ''", "domain"),
		inPolicy.bad("a domain with a slash", "domain: shop/a", "domain"),
		inPolicy.bad("a domain that ends in a dot", "domain: shop.", "domain"),
		inPolicy.good("a domain of 63 characters", "domain: "+long(63)),
		inPolicy.bad("a domain of 64 characters", "domain: "+long(64), "domain"),
		inPolicy.bad("a domain that is a number", "domain: 5", "domain"),

		inPolicy.good("a selector with labels", "selector: {matchLabels: {app: shop, empty: ''}}"),
		inPolicy.good("a selector with expressions", "selector: {matchExpressions: [{key: a, operator: In, values: [x]}, {key: b, operator: NotIn, values: [x, z]}, {key: c, operator: Exists}, {key: d, operator: DoesNotExist, values: []}]}"),
		inPolicy.bad("a selector with an unknown operator", "selector: {matchExpressions: [{key: a, operator: Equals, values: [x]}]}", "selector.matchExpressions[0].operator"),
		inPolicy.bad("a selector with no operator", "selector: {matchExpressions: [{key: a}]}", "selector.matchExpressions[0].operator"),
		inPolicy.bad("a selector with no key", "selector: {matchExpressions: [{operator: Exists}]}", "selector.matchExpressions[0].key"),
		inPolicy.bad("a selector with an empty key", "selector: {matchExpressions: [{key: '', operator: Exists}]}", "selector.matchExpressions[0].key"),
		inPolicy.bad("a selector with In and no values", "selector: {matchExpressions: [{key: a, operator: In}]}", "selector.matchExpressions[0].values"),
		inPolicy.bad("a selector with Exists and values", "selector: {matchExpressions: [{key: a, operator: Exists, values: [x]}]}", "selector.matchExpressions[0].values"),
		inPolicy.bad("a selector that is a text", "selector: app=shop", "selector"),
		inPolicy.bad("labels straight in the selector", "selector: {app: shop}", "selector.app"),

		inPolicy.good("a backend", "redisRef: {name: shared.eu-1, namespace: weir-system}"),
		inPolicy.good("a backend of the own namespace", "redisRef: {name: default}"),
		inPolicy.bad("a backend without name", "redisRef: {}", "redisRef.name"),
		inPolicy.bad("a backend whose name is no object's", "redisRef: {name: Shared}", "redisRef.name"),
		inPolicy.bad("a backend whose name is too long", "redisRef: {name: "+long(254)+"}", "redisRef.name"),
		inPolicy.bad("a backend as namespace/name", "redisRef: {name: weir-system/shared}", "redisRef.name"),
		inPolicy.bad("a backend in no namespace", "redisRef: {name: a, namespace: ''}", "redisRef.namespace"),
		inPolicy.bad("a backend in a namespace with a dot", "redisRef: {name: a, namespace: a.b}", "redisRef.namespace"),
		inPolicy.bad("a backend as a text", "redisRef: shared", "redisRef"),

		inPolicy.bad("no such mode", "mode: enforce", "mode"),
		inPolicy.bad("an empty mode", "mode: ''", "mode"),
		inPolicy.good("a mode that is null is absent", "mode: null"),
		inPolicy.bad("no such failure mode", "failureMode: Open", "failureMode"),
		inPolicy.bad("an empty failure mode", "failureMode: ''", "failureMode"),
		inPolicy.bad("an unknown field", "burst: 5", "burst"),
		inPolicy.bad("a field in another case", "Mode: Shadow", "Mode"),
		inPolicy.bad("several mistakes at once", "domain: a/b, mode: x, rules: []", "domain", "mode", "rules"),

		inPolicy.bad("options that do not exist", "request: {pathCase: Lower, trailingSlash: Keep, preflight: Skip}", "request.pathCase", "request.trailingSlash", "request.preflight"),
		inPolicy.good("no options", "request: {}"),
		inPolicy.good("all options", "request: {pathCase: Insensitive, trailingSlash: Strict, preflight: Count}"),
		inPolicy.bad("an empty option", "request: {pathCase: ''}", "request.pathCase"),
		inPolicy.bad("an unknown option", "request: {query: Strict}", "request.query"),
	}
	for _, mode := range []string{"Enforce", "Shadow", "Disabled"} {
		rows = append(rows, inPolicy.good("mode "+mode, "mode: "+mode))
	}
	for _, mode := range []string{"Allow", "Deny", "LocalFallback"} {
		rows = append(rows, inPolicy.good("failureMode "+mode, "failureMode: "+mode))
	}
	return append(append(append(rows, clientRows()...), responseRows()...), exemptRows()...)
}

func clientRows() []row {
	rows := []row{
		inClient.good("proxies", "trustedProxies: [10.0.0.0/8, 192.0.2.7], header: CF-Connecting-IP, ipv6PrefixLength: 56"),
		inClient.good("hops", "trustedHops: 1"),
		inClient.good("trust in nobody", "trustedHops: 0"),
		inClient.bad("neither proxies nor hops", "header: X-Real-IP", ""),
		inClient.bad("both proxies and hops", "trustedProxies: [10.0.0.0/8], trustedHops: 1", ""),
		inClient.bad("no proxies", "trustedProxies: []", "trustedProxies"),
		inClient.good("64 proxies", "trustedProxies: "+many(64, "10.0.0.%d")),
		inClient.bad("65 proxies", "trustedProxies: "+many(65, "10.0.0.%d"), "trustedProxies"),
		inClient.bad("a proxy by name", "trustedProxies: [10.0.0.0/8, proxy.example.com]", "trustedProxies[1]"),
		inClient.bad("fewer than no hops", "trustedHops: -1", "trustedHops"),
		inClient.good("16 hops", "trustedHops: 16"),
		inClient.bad("17 hops", "trustedHops: 17", "trustedHops"),
		inClient.bad("hops as a text", "trustedHops: '1'", "trustedHops"),
		inClient.bad("hops that overflow", "trustedHops: 4294967297", "trustedHops"),
		inClient.bad("half a hop", "trustedHops: 0.5", "trustedHops"),
		inClient.bad("an empty header", "trustedHops: 1, header: ''", "header"),
		inClient.bad("a header with a colon", "trustedHops: 1, header: 'X-Real-IP:'", "header"),
		inClient.bad("a header with a line break", `trustedHops: 1, header: "X-A\n"`, "header"),
		inClient.bad("a header that is too long", "trustedHops: 1, header: "+long(129), "header"),
		inClient.good("prefixes of 32 bits", "trustedHops: 1, ipv6PrefixLength: 32"),
		inClient.good("whole addresses", "trustedHops: 1, ipv6PrefixLength: 128"),
		inClient.bad("prefixes of 31 bits", "trustedHops: 1, ipv6PrefixLength: 31", "ipv6PrefixLength"),
		inClient.bad("prefixes of 129 bits", "trustedHops: 1, ipv6PrefixLength: 129", "ipv6PrefixLength"),
	}
	for _, text := range []string{"10.1.2.3/8", "192.168.11.20/24", "0.0.0.0/0", "8.8.8.8", "2001:db8::/32", "2001:DB8::1", "::/0", "::1", "::1.2.3.4", "64:ff9b::808:808/96", "0000:0000:0000:0000:0000:0000:255.255.255.255/128"} {
		rows = append(rows, inClient.good("the range "+text, "trustedProxies: ['"+text+"']"))
	}
	for _, text := range []string{"", " ", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "10.0.0.0/08", "10.0.0.0/-1", "010.0.0.1", "256.0.0.1", "10.0.0.1:80", "[::1]", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "::FFFF:a00:1", "fe80::1%eth0", "fe80::/10%eth0", "10.0.0.0/8 ", "all", "2001:db8::/129", "1:2:3:4:5:6:7:8:9", "0:0:0:0:0:0:0:0:0/0"} {
		rows = append(rows, inClient.bad("the range "+text, "trustedProxies: ['"+text+"']", "trustedProxies[0]"))
	}
	return rows
}

func responseRows() []row {
	return []row{
		inResponse.good("nothing", ""),
		inResponse.good("no headers", "headers: []"),
		inResponse.good("both families", "headers: [Legacy, Standard]"),
		inResponse.good("null is absent", "headers: null, detail: null, cors: null"),
		inResponse.bad("a family twice", "headers: [Legacy, Legacy]", "headers[1]"),
		inResponse.bad("no such family", "headers: [Draft]", "headers[0]"),
		inResponse.bad("an empty family", "headers: ['']", "headers[0]"),
		inResponse.bad("families as a text", "headers: Standard", "headers"),
		inResponse.good("little detail", "detail: Minimal"),
		inResponse.good("full detail", "detail: Full"),
		inResponse.bad("no such detail", "detail: None", "detail"),
		inResponse.bad("an empty detail", "detail: ''", "detail"),
		inResponse.good("origins", "cors: {allowOrigins: ['https://shop.example.com', 'http://localhost:3000', 'http://[::1]:8080', 'capacitor://localhost']}"),
		inResponse.good("every origin", "cors: {allowOrigins: ['*']}"),
		inResponse.bad("no origins", "cors: {allowOrigins: []}", "cors.allowOrigins"),
		inResponse.bad("origins left out", "cors: {}", "cors.allowOrigins"),
		inResponse.bad("an origin with a path", "cors: {allowOrigins: ['https://shop.example.com/']}", "cors.allowOrigins[0]"),
		inResponse.bad("an origin without scheme", "cors: {allowOrigins: ['shop.example.com']}", "cors.allowOrigins[0]"),
		inResponse.bad("an origin with a wildcard", "cors: {allowOrigins: ['https://*.example.com']}", "cors.allowOrigins[0]"),
		inResponse.bad("an origin in upper case", "cors: {allowOrigins: ['https://Shop.example.com']}", "cors.allowOrigins[0]"),
		inResponse.bad("an empty origin", "cors: {allowOrigins: ['']}", "cors.allowOrigins[0]"),
		inResponse.bad("an origin twice", "cors: {allowOrigins: ['*', 'https://a', '*']}", "cors.allowOrigins[2]"),
		inResponse.good("32 origins", "cors: {allowOrigins: "+many(32, "'https://a%d'")+"}"),
		inResponse.bad("33 origins", "cors: {allowOrigins: "+many(33, "'https://a%d'")+"}", "cors.allowOrigins"),
		inResponse.bad("an origin that is too long", "cors: {allowOrigins: ['https://"+long(253)+"']}", "cors.allowOrigins[0]"),
	}
}

func exemptRows() []row {
	return []row{
		inPolicy.good("no exemptions", "exempt: []"),
		inExempt.good("by path", "match: {paths: [{type: Exact, value: /healthz}]}"),
		inExempt.good("by address", "match: {clientCIDRs: [192.168.11.20/24, 8.8.8.8]}"),
		inExempt.good("by host", "match: {hosts: [a.example.com]}"),
		inExempt.good("by method", "match: {methods: [OPTIONS]}"),
		inExempt.good("by header", "match: {headers: [{name: X-Probe, type: Present}]}"),
		inExempt.good("by descriptor", "match: {descriptor: [{key: probe}]}"),
		inExempt.bad("an empty match", "match: {}", "match"),
		inExempt.bad("no match", "match: null", "match"),
		inExempt.bad("a match of empty lists", "match: {hosts: [], methods: [], paths: [], headers: [], clientCIDRs: [], descriptor: []}", "match"),
		inExempt.bad("a wrong match", "match: {clientCIDRs: [office]}", "match.clientCIDRs[0]"),
		inExempt.bad("no name", "name: null, match: {methods: [GET]}", "name"),
		inExempt.bad("a name in upper case", "name: Probes, match: {methods: [GET]}", "name"),
		inExempt.bad("a name that is too long", "name: "+long(64)+", match: {methods: [GET]}", "name"),
		inExempt.good("a name that rules can't have", "name: override, match: {methods: [GET]}"),
		inPolicy.bad("a name twice", "exempt: [{name: a, match: {methods: [GET]}}, {name: b, match: {methods: [GET]}}, {name: a, match: {methods: [PUT]}}]", "exempt[2].name"),
		inPolicy.good("16 exemptions", "exempt: "+many(16, "{name: e%d, match: {methods: [GET]}}")),
		inPolicy.bad("17 exemptions", "exempt: "+many(17, "{name: e%d, match: {methods: [GET]}}"), "exempt"),
	}
}
