#!/bin/bash
# The package under systemd, in a container: the unit's sandbox lets the agent do all its work (start, reload, upgrade, attach, watchdog), it is started
# again when it dies, and removing the package ends it. Needs systemd-nspawn and a Debian mirror; the clean root is that of install.sh.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

package=$(ls "$build"/deb/warmpath_*.deb 2>/dev/null)
[ -n "$package" ] || bail "there is a package: make deb"
clean=$build/package/clean
if ! command -v systemd-nspawn >/dev/null || [ ! -e "$clean/etc/debian_version" ]; then
	skip "systemd-nspawn, or the clean root of install.sh" "the package runs under systemd"
	exit 0
fi
root=$scratch/root
cp -a "$clean" "$root"
cp "$package" "$root/tmp/warmpath.deb"
# shellcheck disable=SC2016  # its own arguments
check "it is installed beside systemd" unshare -m bash -c '
	mount --make-rprivate /
	for directory in proc sys dev; do mount --rbind /$directory "$1/$directory"; done
	DEBIAN_FRONTEND=noninteractive chroot "$1" sh -c "apt-get update -q && apt-get install -y -q --no-install-recommends systemd systemd-sysv /tmp/warmpath.deb"
' install "$root" || bail "the rest makes no sense without"
rm -f "$root/usr/sbin/policy-rc.d"
pins=$(tools/lab path pin)
(umask 077 && head -c 32 /dev/urandom >"$root/etc/warmpath/secret")
chown 1000 "$root/etc/warmpath/secret"
sed -e '0,/name: eth0/s//name: lo/; 0,/mode: auto/s//mode: generic/' -e "s|^pin_path:.*|pin_path: $pins|" \
	"$root/usr/share/doc/warmpath/examples/warmpath.yaml" >"$root/etc/warmpath/warmpath.yaml"
sed -i 's/^WatchdogSec=.*/WatchdogSec=4s/' "$root/lib/systemd/system/warmpathd.service"

# what is done inside, a line for each result
cat >"$root/try" <<'TRY'
#!/bin/bash
exec >/said 2>&1
for i in $(seq 60); do systemctl is-active -q warmpathd && break; sleep 0.5; done
process() { systemctl show -p MainPID --value warmpathd; }
echo "state $(systemctl is-active warmpathd)"
echo "attached $(warmpath status --json | grep -c '"attached": "generic"')"
echo "seccomp $(sed -n 's/^Seccomp:\t//p' "/proc/$(process)/status")"
echo "capabilities $(sed -n 's/^Cap\(Prm\|Bnd\):\t//p' "/proc/$(process)/status" | sort -u)"
echo "reload $(systemctl reload warmpathd; echo $?)"
echo "upgrade $(warmpath upgrade >/dev/null; echo $?)"
echo "drain $(warmpath replica drain llm-0 --service chat)"
echo "attach $(warmpath attach lo --mode generic)"
sleep 9
echo "restarts by the watchdog $(systemctl show -p NRestarts --value warmpathd)"
kill -9 "$(process)"
for i in $(seq 60); do warmpath status >/dev/null 2>&1 && break; sleep 0.5; done
echo "adopted $(warmpath status --json | grep -c '"adopted": true')"
echo "drained $(warmpath replica list --service chat | grep -c draining)"
echo "complaints $(journalctl -u warmpathd -o cat | grep -cE '^error|not permitted|Read-only|capng')"
echo "removed $(dpkg --remove warmpath >/dev/null; echo $?)"
echo "state $(systemctl is-active warmpathd)"
systemctl poweroff --force
TRY
chmod 0755 "$root/try"
printf '[Unit]\nAfter=warmpathd.service\n[Service]\nType=oneshot\nExecStart=/try\nTimeoutStartSec=300\n' >"$root/etc/systemd/system/try.service"
ln -s ../try.service "$root/etc/systemd/system/multi-user.target.wants/try.service"
timeout 300 systemd-nspawn -q --register=no --keep-unit --private-network --capability=all --bind=/sys/fs/bpf \
	--system-call-filter="bpf perf_event_open" -D "$root" -b --console=pipe </dev/null >"$scratch/console" 2>&1
note <"$root/said"
said() { is "$1" "$(sed -n "s/^$2 //p" "$root/said" | sed -n "${4:-1}p")" "$3"; }
said "the agent runs" state active
said "it has attached" attached 1
said "system calls are filtered" seccomp 2
said "capabilities are the unit's" capabilities 000000c000003004
said "systemctl reload" reload 0
said "warmpath upgrade" upgrade 0
said "a replica is drained" drain draining
said "an interface is attached" attach "attached (generic)"
said "the watchdog is content" "restarts by the watchdog" 0
said "killed, it is started again and takes over" adopted 1
said "with what commands have said" drained 1
said "nothing was forbidden" complaints 0
said "the package is removed" removed 0
said "and the agent ends" state inactive 2
check "no pin is left" test ! -e "$pins"
