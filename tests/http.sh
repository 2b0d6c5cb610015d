# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # of the scripts that source it
# Common to the end-to-end tests of connections that are handed over, to be sourced after tests/lib.sh: real HTTP servers on the replicas, and
# what each of them answers when it is asked directly.
#
# Every server has the paths /files/NAME (a file of the replica's own folder); Node's also POST /upload (length and SHA-256 of the body),
# /events (server-sent events: ?count=N&interval=MS) and the API of a chat completion, streamed.

api4=10.9.9.8 api6=fd00:9::8
run=$(tools/lab path run)

in_client() { in_host client "$@"; }

# http_files SIZE...: a file of each size on each replica, no two alike
http_files() {
	local name size
	while read -r name _; do
		mkdir -p "$run/$name/files"
		for size in "$@"; do
			openssl enc -aes-128-ctr -pass "pass:$name-$size" -nosalt -pbkdf2 -in /dev/zero 2>/dev/null |
				head -c "$size" >"$run/$name/files/f$size"
		done
		chmod -R a+rX "$run/$name"
	done < <(tools/lab list)
}

# http_expect [DIRECTORY]: asks every replica directly for all its files, and keeps the answers in $scratch/expected/REPLICA/NAME
http_expect() {
	local name ipv4 port file
	while read -r name ipv4 _ port _; do
		mkdir -p "$scratch/expected/$name"
		for file in "$run/$name/files"/*; do
			in_host router curl -sS --fail -o "$scratch/expected/$name/${file##*/}" \
				"http://$ipv4:$port/files/${file##*/}" || return 1
			# curl makes no file of an empty body
			[ -e "$scratch/expected/$name/${file##*/}" ] || : >"$scratch/expected/$name/${file##*/}"
		done
	done < <(tools/lab list)
	diff -r "$scratch/expected/llm-0" "$run/llm-0/files"
}

# http_plan COUNT: "ID HOME" for so many ids, in $scratch/plan
http_plan() {
	local names
	names=$(tools/lab list | awk '{printf "%s%s", separator, $1; separator = ","}')
	ids "$1" | homes "$names" >"$scratch/plan"
}

node_server() { # NAME DIRECTORY PORT
	cat <<-JAVASCRIPT
		const http = require('http'), fs = require('fs'), crypto = require('crypto');
		const name = '$1', folder = '$2', port = $3;
		http.createServer((request, answer) => {
			const url = new URL(request.url, 'http://replica');
			const id = request.headers['x-conversation-id'] || '';
			answer.setHeader('X-Replica', name);
			if (url.pathname.startsWith('/files/')) {
				fs.readFile(folder + url.pathname, (error, bytes) => {
					answer.statusCode = error ? 404 : 200;
					answer.end(error ? 'no such file\n' : bytes);
				});
				return;
			}
			const hash = crypto.createHash('sha256');
			const parts = [];
			let length = 0;
			request.on('data', part => {
				hash.update(part);
				length += part.length;
				if (length < 1e6) parts.push(part);
			});
			request.on('end', () => {
				if (url.pathname === '/upload') {
					answer.end(length + ' ' + hash.digest('hex') + '\n');
					return;
				}
				const stream = (count, interval, text, last) => {
					let sent = 0;
					answer.setHeader('Content-Type', 'text/event-stream');
					const timer = setInterval(() => {
						if (sent === count) {
							clearInterval(timer);
							answer.end(last);
						} else {
							answer.write('data: ' + text(sent++) + '\n\n');
						}
					}, interval);
					answer.on('close', () => clearInterval(timer));
				};
				if (url.pathname === '/events') {
					stream(+url.searchParams.get('count'), +url.searchParams.get('interval'),
						number => name + ' ' + id + ' ' + number, '');
					return;
				}
				if (url.pathname.startsWith('/answer/')) {
					const text = name + ' ' + id + '\\n';
					switch (url.pathname.slice(8)) {
					case 'none': answer.writeHead(204).end(); return;
					case 'unchanged': answer.writeHead(304, {ETag: '"1"', 'Content-Length': 5}).end(); return;
					case 'empty': answer.writeHead(200, {'Content-Length': 0}).end(); return;
					case 'chunks': answer.write(text), answer.write('x'.repeat(3000)), answer.end(text); return;
					case 'trailers':
						answer.setHeader('Trailer', 'X-Sum');
						answer.write(text), answer.addTrailers({'X-Sum': '1'}), answer.end();
						return;
					case 'hints': answer.writeEarlyHints({link: '</style.css>; rel=preload; as=style'}), answer.end(text); return;
					case 'long': answer.end(text.repeat(20000)); return;
					case 'many-chunks': for (let i = 0; i < 3000; i++) answer.write(text); answer.end(); return;
					case 'error': answer.writeHead(500).end(text); return;
					}
				}
				if (url.pathname !== '/v1/chat/completions') {
					answer.end(name + '\n');
					return;
				}
				const asked = JSON.parse(Buffer.concat(parts));
				const words = [name, 'heard', String(asked.messages.length), 'messages'];
				const chunk = (word, end) => JSON.stringify({
					id: 'chat', object: asked.stream ? 'chat.completion.chunk' : 'chat.completion', created: 1, model: asked.model,
					choices: [{index: 0, finish_reason: end ? 'stop' : null,
						[asked.stream ? 'delta' : 'message']: {role: 'assistant', content: word}}]});
				if (asked.stream) {
					stream(words.length, 20, number => chunk(words[number] + ' ', false), 'data: [DONE]\n\n');
				} else {
					answer.setHeader('Content-Type', 'application/json');
					answer.end(chunk(words.join(' '), true));
				}
			});
		}).on('upgrade', (request, socket) => {
			socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\nX-Replica: ' + name + '\\r\\n\\r\\n');
			socket.pipe(socket);
		}).on('clientError', (error, socket) => {
			socket.end('HTTP/1.1 400 Bad Request\\r\\nX-Replica: ' + name + '\\r\\nConnection: close\\r\\n\\r\\n');
		}).listen({host: '::', port: port, backlog: 4096});
	JAVASCRIPT
}

# http_servers_start python|node: on every replica of a lab that is up with --servers none
http_servers_start() {
	local name port
	while read -r name _ _ port _; do
		case $1 in
		python)
			# exec, so that what is killed later is the server itself
			(cd "$run/$name" && exec nsenter --net="/run/netns/$WARMPATH_LAB-$name" -- /usr/bin/python3 -m http.server "$port" --bind :: \
				--directory "$run/$name" --protocol HTTP/1.1) >"$run/$name/server.log" 2>&1 &
			;;
		node)
			node_server "$name" "$run/$name" "$port" >"$run/$name/server.js"
			tools/lab exec "$name" node --max-http-header-size=65536 "$run/$name/server.js" >"$run/$name/server.log" 2>&1 &
			;;
		esac
		echo $! >"$run/$name/server.pid"
	done < <(tools/lab list)
	http_servers_answer || bail "the servers ($1) answer"
}

http_servers_answer() {
	local name ipv4 port
	while read -r name ipv4 _ port _; do
		wait_until 15 in_host router curl -sS -m 2 -o /dev/null "http://$ipv4:$port/" || return 1
	done < <(tools/lab list)
}

http_servers_stop() {
	local name
	while read -r name _; do
		kill -KILL "$(cat "$run/$name/server.pid")"
		wait "$(cat "$run/$name/server.pid")"
	done < <(tools/lab list) 2>/dev/null
	return 0
}

# counted NAME: a number of the last line of http_requests' report on standard input
counted() { sed -n "s/^requests=.*\\b$1=\\([0-9]*\\).*/\\1/p;s/^$1=\\([0-9]*\\).*/\\1/p" | tail -n 1; }

# requests_are_right DESCRIPTION REPORT-FILE COUNT: all of them answered, by the home, with the right bytes, and nothing was reset
requests_are_right() {
	note "$1: $(tail -n 1 "$2")"
	if [ "$(tail -n 1 "$2" | sed 's/ connections=.*//')" = "requests=$3 answered=$3 failed=0 reset=0 astray=0 different=0" ]; then
		ok "$1: each answered by its home, byte for byte"
	else
		head -n 10 "$2" | note
		not_ok "$1: each answered by its home, byte for byte"
	fi
}

# two_homes: two ids of the plan with different homes: ID HOME-ADDRESS ID HOME-ADDRESS
two_homes() { # ipv4|ipv6
	tools/lab list | awk -v family="$1" '
		NR == FNR { address[$1] = family == "ipv4" ? $2 : $3; next }
		!first { first = $1; home = $2; next }
		$2 != home { print first, address[home], $1, address[$2]; exit }' - "$scratch/plan"
}

# tap_of DESCRIPTION COMMAND...: the TAP of a test program becomes ours
tap_of() {
	local line description=$1 before=$failure_count result=0
	shift
	"$@" >"$scratch/tap" 2>&1 || result=$?
	while read -r line; do
		case $line in
		'ok '*) ok "$description: ${line#* - }" ;;
		'not ok '*) not_ok "$description: ${line#* - }" ;;
		1..*) ;;
		*) echo "$line" ;;
		esac
	done <"$scratch/tap"
	[ $result = 0 ] || [ "$failure_count" -gt "$before" ] || not_ok "$description: exit status $result"
}
