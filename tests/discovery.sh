# shellcheck shell=bash
# Common to the tests of discovery, to be sourced by them after tests/lib.sh: the stand-in for an API server, what warmpathd makes of what is found.

# --- the API server (tests/e2e/api_server.c) -------------------------------------------------------------------

api_start() { # namespace
	rm -f "$scratch/api.input"
	mkfifo "$scratch/api.input"
	: >"$scratch/api.log"
	tools/lab exec router "$build/tests/e2e/api_server" 6443 "$1" <"$scratch/api.input" >>"$scratch/api.log" 2>&1 &
	api_process=$!
	exec {api_input}>"$scratch/api.input"
	wait_until 5 grep -q ready "$scratch/api.log"
}

api_certificate() { # KEY CERTIFICATE NAME ADDRESS: files to write, and of whom: an authority of its own
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$3" -addext "subjectAltName=IP:$4" \
		-keyout "$1" -out "$2" 2>"$scratch/output"
}

api_behind_tls() { # ADDRESS:PORT KEY CERTIFICATE: a proxy with TLS before the API server
	cat >"$scratch/nginx.conf" <<-NGINX
		user root;
		pid $scratch/nginx.pid;
		error_log $scratch/nginx.log;
		events {}
		http {
			access_log off;
			server {
				listen $1 ssl;
				ssl_certificate $3;
				ssl_certificate_key $2;
				location / {
					proxy_pass http://127.0.0.1:6443;
					proxy_http_version 1.1;
					proxy_buffering off;
				}
			}
		}
	NGINX
	tools/lab exec router nginx -c "$scratch/nginx.conf"
}

api() { # command: has it carried out
	local before
	before=$(grep -c '^done' "$scratch/api.log")
	echo "$*" >&"$api_input"
	until [ "$(grep -c '^done' "$scratch/api.log")" -gt "$before" ]; do
		kill -0 "$api_process" 2>/dev/null || return 1
		sleep 0.01
	done
}

requests() { grep -c "^request $1" "$scratch/api.log"; } # pattern: how many of them there have been
requested() { [ "$(requests "$1")" -gt "$2" ]; }         # pattern before: whether there was another one

api_stop() {
	kill "$api_process"
	wait "$api_process" 2>/dev/null
	exec {api_input}>&-
}

# kubernetes_configuration URL [OPTIONS OF tools/lab config]: service chat with that source alone
kubernetes_configuration() {
	local url=$1
	shift
	tools/lab config --mode native --services chat "$@" | sed '/^    replicas:/,$d; /discovery: \[\]/d'
	cat <<-YAML
		    discovery:
		      - from: kubernetes
		        api_server: $url
		        token_file: $scratch/token
		        ca_file: $scratch/ca.pem
		        namespace: in-cluster
		        service: llm
		        port_name: http
		        weight: 1.0
		    replicas: []
	YAML
}

# --- what warmpathd makes of it ------------------------------------------------------------------------------

# the replicas: NAME STATE ADDRESSES
members() {
	warmpath replica list --json | jq -r '.replicas[] | "\(.name) \(.state) \([.addresses[].address] | join(","))"'
}
are() { [ "$(members)" = "$(printf '%s\n' "$@")" ]; }

# become DESCRIPTION MEMBER...: the replicas become these; how long that took is noted, as its time is not what is tested
become() {
	local description=$1 started
	shift
	started=$(date +%s%N)
	if wait_until 15 are "$@"; then
		note "$description: $((($(date +%s%N) - started) / 1000000)) ms"
		ok "$description"
	else
		members | note
		not_ok "$description"
	fi
}

source_value() { warmpath service show chat --json | jq -r ".services[0].discovery[0].$1"; }
state_is() { [ "$(source_value state)" = "$1" ]; }

# the log of warmpathd
log_lines() { wc -l <"$run/agent.log"; }
complained() { tail -n "+$1" "$run/agent.log" | grep -qE "$2"; } # from-line pattern
