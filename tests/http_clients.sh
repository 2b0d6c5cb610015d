# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # of the scripts that source it
# Clients that programs use, each over few connections for many conversations; to be sourced after tests/http.sh. Each prints lines "ID REPLICA".

python_client() { # ADDRESS PLAN ROUNDS: Python's http.client, one connection
	in_client /usr/bin/python3 - "$@" <<-'PYTHON'
		import http.client, sys
		connection = http.client.HTTPConnection(sys.argv[1], 8000, timeout=15)
		ids = [line.split()[0] for line in open(sys.argv[2])]
		connection.connect()
		local = connection.sock.getsockname()
		for _ in range(int(sys.argv[3])):
		    for id in ids:
		        connection.request("POST", "/x", body=b"question", headers={"X-Conversation-Id": id})
		        answer = connection.getresponse()
		        print(id, answer.read().decode().split()[0])
		        assert connection.sock.getsockname() == local
	PYTHON
}

node_client() { # ADDRESS PLAN ROUNDS: Node's fetch
	in_client node - "$@" <<-'JAVASCRIPT'
		const [address, plan, rounds] = process.argv.slice(2);
		const ids = require('fs').readFileSync(plan, 'utf8').trim().split('\n').map(line => line.split(' ')[0]);
		(async () => {
			for (let round = 0; round < +rounds; round++) {
				const answers = await Promise.all(ids.map(async id => {
					const answer = await fetch(`http://${address}:8000/x`, {method: 'POST', body: 'question', headers: {'x-conversation-id': id}});
					return `${id} ${(await answer.text()).split(/\s/)[0]}`;
				}));
				console.log(answers.join('\n'));
			}
		})();
	JAVASCRIPT
}

# The package from npm, fetched once; false where npm or its registry is out of reach.
openai_client_ready() {
	local directory=$build/node
	[ -d "$directory/node_modules/openai" ] && return
	command -v npm >/dev/null || return 1
	mkdir -p "$directory"
	echo '{"private": true}' >"$directory/package.json"
	timeout 60 npm install --prefix "$directory" --no-save --no-audit --no-fund --ignore-scripts openai@5.23.2 >"$scratch/npm.log" 2>&1
}

openai_client() { # ADDRESS PLAN ROUNDS: the openai package, answers streamed and whole in turn
	in_client env NODE_PATH="$(realpath "$build")/node/node_modules" node - "$@" <<-'JAVASCRIPT'
		const OpenAI = require('openai').default;
		const [address, plan, rounds] = process.argv.slice(2);
		const ids = require('fs').readFileSync(plan, 'utf8').trim().split('\n').map(line => line.split(' ')[0]);
		const client = new OpenAI({baseURL: `http://${address}:8000/v1`, apiKey: 'none', maxRetries: 0, timeout: 15000});
		(async () => {
			for (let round = 0; round < +rounds; round++) {
				await Promise.all(ids.map(async id => {
					const asked = {model: 'model', messages: [{role: 'user', content: 'question ' + round}], stream: round % 2 === 0};
					const answer = await client.chat.completions.create(asked, {headers: {'x-conversation-id': id}});
					let text = '';
					if (asked.stream) {
						for await (const part of answer) text += part.choices[0].delta.content;
					} else {
						text = answer.choices[0].message.content;
					}
					const [replica, heard, count] = text.trim().split(' ');
					console.log(id, heard === 'heard' && count === '1' ? replica : text);
				}));
			}
		})();
	JAVASCRIPT
}
