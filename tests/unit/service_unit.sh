#!/bin/bash
# The unit for systemd as it is installed: systemd accepts it, and finds the service well shut in.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"

check "make install" make --no-print-directory install BUILD="$build" DESTDIR="$scratch/root"
unit=$scratch/root/etc/systemd/system/warmpathd.service
check "the programs of the unit are installed" sh -c \
	"sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' '$unit' | while read -r program; do test -x '$scratch/root'\$program || exit 1; done"
if command -v systemd-analyze >/dev/null; then
	# verify wants to find the programs where the unit says
	sed "s|/usr/local/|$scratch/root/usr/local/|" "$unit" >"$scratch/warmpathd.service"
	check "systemd-analyze verify" systemd-analyze verify --man=no "$scratch/warmpathd.service"
	check "without a word" sh -c "! systemd-analyze verify --man=no '$scratch/warmpathd.service' 2>&1 | grep ."
	check "systemd-analyze security: exposure of 2.5 at most" \
		systemd-analyze security --offline=true --threshold=25 --no-pager "$scratch/warmpathd.service"
else
	skip systemd-analyze "systemd-analyze verify and security"
fi
