package schema

func backendRows() []row {
	rows := []row{
		inBackend.good("one server", ""),
		inBackend.bad("no mode", "mode: null", "mode"),
		inBackend.bad("no such mode", "mode: Replica", "mode"),
		inBackend.bad("no addresses", "addresses: []", "addresses"),
		inBackend.bad("addresses left out", "addresses: null", "addresses"),
		inBackend.bad("an address as a text", "addresses: 'redis:6379'", "addresses"),
		inBackend.bad("two servers", "addresses: ['a:1', 'b:1']", "addresses"),
		inBackend.good("a cluster", "mode: Cluster, addresses: ['a:1', 'b:1']"),
		inBackend.bad("a cluster that names a node twice", "mode: Cluster, addresses: ['a:1', 'b:1', 'a:1']", "addresses[2]"),
		inBackend.good("16 nodes", "mode: Cluster, addresses: "+many(16, "'n%d:1'")),
		inBackend.bad("17 nodes", "mode: Cluster, addresses: "+many(17, "'n%d:1'"), "addresses"),
		inBackend.bad("17 servers", "addresses: "+many(17, "'n%d:1'"), "addresses"),
		inBackend.bad("a cluster with a database", "mode: Cluster, database: 0", "database"),
		inBackend.bad("a cluster with sentinels", "mode: Cluster, sentinel: {masterName: a}", "sentinel"),
		inBackend.good("sentinels", "mode: Sentinel, addresses: ['a:1', 'b:1'], sentinel: {masterName: my primary, credentialsSecretRef: {name: s}}, database: 5"),
		inBackend.bad("sentinels without a primary's name", "mode: Sentinel, sentinel: {}", "sentinel.masterName"),
		inBackend.bad("sentinels with an empty name", "mode: Sentinel, sentinel: {masterName: ''}", "sentinel.masterName"),
		inBackend.bad("sentinels with a name that is too long", "mode: Sentinel, sentinel: {masterName: "+long(129)+"}", "sentinel.masterName"),
		inBackend.bad("sentinels with a nameless Secret", "mode: Sentinel, sentinel: {masterName: a, credentialsSecretRef: {}}", "sentinel.credentialsSecretRef.name"),
		inBackend.bad("mode Sentinel without sentinel", "mode: Sentinel", "sentinel"),
		inBackend.bad("sentinel without mode Sentinel", "sentinel: {masterName: a}", "sentinel"),
		inBackend.good("the last database", "database: 1023"),
		inBackend.bad("database 1024", "database: 1024", "database"),
		inBackend.bad("database -1", "database: -1", "database"),
		inBackend.bad("a database as text", "database: '0'", "database"),
		inBackend.good("credentials", "credentialsSecretRef: {name: redis.v1}, hashKeySecretRef: {name: hash-key}"),
		inBackend.bad("credentials without name", "credentialsSecretRef: {}, hashKeySecretRef: {name: ''}", "credentialsSecretRef.name", "hashKeySecretRef.name"),
		inBackend.bad("credentials by a name that is no object's", "credentialsSecretRef: {name: My Secret}", "credentialsSecretRef.name"),
		inBackend.bad("credentials of another namespace", "credentialsSecretRef: {name: a, namespace: b}", "credentialsSecretRef.namespace"),
		inBackend.bad("credentials as a text", "credentialsSecretRef: redis", "credentialsSecretRef"),
		inBackend.bad("a password in the spec", "password: secret", "password"),
		inBackend.good("a prefix", "keyPrefix: eu-1.prod_a"),
		inBackend.bad("an empty prefix", "keyPrefix: ''", "keyPrefix"),
		inBackend.bad("a prefix with a colon", "keyPrefix: 'rl:'", "keyPrefix"),
		inBackend.bad("a prefix with a brace", "keyPrefix: '{rl}'", "keyPrefix"),
		inBackend.good("a prefix of 32 characters", "keyPrefix: "+long(32)),
		inBackend.bad("a prefix of 33 characters", "keyPrefix: "+long(33), "keyPrefix"),
		inBackend.good("one connection", "poolSize: 1"),
		inBackend.good("a thousand connections", "poolSize: 1000"),
		inBackend.bad("no connections", "poolSize: 0", "poolSize"),
		inBackend.bad("1001 connections", "poolSize: 1001", "poolSize"),
	}
	for _, text := range []string{"redis:6379", "redis-0.redis.shop.svc.cluster.local:1", "192.0.2.7:65535", "[2001:db8::1]:6379", "[::FFFF:1.2.3.4]:6379", "my_redis:6379", "Redis:6379"} {
		rows = append(rows, inBackend.good("the address "+text, "addresses: ['"+text+"']"))
	}
	for _, text := range []string{"", "redis", "redis:", ":6379", "redis:0", "redis:06379", "redis:65536", "redis:99999", "redis:100000", "redis://redis:6379", "redis:6379/0", "::1:6379", "[::1]", "a b:1", "a@b:1", "-a:1", "redis:6379 ", long(256) + ":6379"} {
		rows = append(rows, inBackend.bad("the address "+text, "addresses: ['"+text+"']", "addresses[0]"))
	}
	rows = append(rows, secretRows()...)
	return append(append(rows, timeoutRows()...), allowedRows()...)
}

func secretRows() []row {
	return []row{
		inTLS.good("the system's authorities", ""),
		inTLS.good("all of it", "caSecretRef: {name: ca}, certSecretRef: {name: cert}, serverName: redis.example.com"),
		inTLS.good("authorities from a ConfigMap", "caConfigMapRef: {name: kube-root-ca.crt}, serverName: '::1'"),
		inTLS.bad("authorities twice", "caSecretRef: {name: a}, caConfigMapRef: {name: b}", ""),
		inTLS.bad("authorities without name", "caSecretRef: {}", "caSecretRef.name"),
		inTLS.bad("nameless references", "caConfigMapRef: {name: ''}, certSecretRef: {}", "caConfigMapRef.name", "certSecretRef.name"),
		inTLS.bad("no verification", "insecureSkipVerify: true", "insecureSkipVerify"),
		inTLS.bad("an empty server name", "serverName: ''", "serverName"),
		inTLS.bad("a server name with a blank", "serverName: 'a b'", "serverName"),
		inTLS.bad("a server name that is too long", "serverName: "+long(254), "serverName"),
		inBackend.bad("tls as true", "tls: true", "tls"),
		inCredentials.good("credentials of a namespace", ""),
		inCredentials.bad("credentials of no namespace", "namespace: null", "namespace"),
		inCredentials.bad("credentials of an empty namespace", "namespace: ''", "namespace"),
		inCredentials.bad("credentials of every namespace", "namespace: '*'", "namespace"),
		inCredentials.bad("credentials of a long namespace", "namespace: "+long(64), "namespace"),
		inCredentials.bad("no Secret", "secretRef: null", "secretRef.name"),
		inCredentials.bad("a nameless Secret", "secretRef: {}", "secretRef.name"),
		inBackend.bad("a namespace twice", "namespaceCredentials: [{namespace: a, secretRef: {name: s}}, {namespace: a, secretRef: {name: t}}]", "namespaceCredentials[1].namespace"),
		inBackend.good("64 namespaces", "namespaceCredentials: "+many(64, "{namespace: n%d, secretRef: {name: s}}")),
		inBackend.bad("65 namespaces", "namespaceCredentials: "+many(65, "{namespace: n%d, secretRef: {name: s}}"), "namespaceCredentials"),
	}
}

func timeoutRows() []row {
	rows := []row{
		inTimeouts.good("none", ""),
		inTimeouts.good("the shortest", "dial: 10ms, decision: 1ms"),
		inTimeouts.good("the longest", "dial: 30s, decision: 5s"),
		inTimeouts.good("the longest in milliseconds", "dial: 30000ms, decision: 5000ms"),
		inTimeouts.bad("too short a dial", "dial: 9ms", "dial"),
		inTimeouts.bad("too long", "dial: 31s, decision: 6s", "dial", "decision"),
		inTimeouts.bad("too long in milliseconds", "dial: 30001ms, decision: 5001ms", "dial", "decision"),
		inTimeouts.bad("numbers", "decision: 50", "decision"),
		inTimeouts.bad("an unknown one", "read: 1s", "read"),
	}
	for _, text := range []string{"", "50", "0ms", "0s", "-1s", "+1s", "1m", "1.5s", "500us", "1s500ms", "01s", "1 s", "100000ms", "99999s"} {
		rows = append(rows, inTimeouts.bad("the timeout "+text, "dial: '"+text+"', decision: '"+text+"'", "dial", "decision"))
	}
	return rows
}

func allowedRows() []row {
	return []row{
		inAllowed.good("the same namespace", "from: Same"),
		inAllowed.good("all namespaces", "from: All"),
		inAllowed.good("some namespaces", "from: Selector, selector: {matchLabels: {team: shop}}"),
		inAllowed.good("all namespaces by a selector", "from: Selector, selector: {}"),
		inAllowed.bad("nothing", "", "from"),
		inAllowed.bad("no such choice", "from: None", "from"),
		inAllowed.bad("no such choice with a selector", "from: None, selector: {}", "from"),
		inAllowed.bad("a selector that is missing", "from: Selector", "selector"),
		inAllowed.bad("a selector that is not used", "from: All, selector: {}", "selector"),
		inAllowed.bad("a selector with an unknown operator", "from: Selector, selector: {matchExpressions: [{key: a, operator: Is}]}", "selector.matchExpressions[0].operator"),
	}
}
