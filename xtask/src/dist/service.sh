#!/bin/sh
# The package on a machine that systemd has started: nothing runs before somebody says what, a
# reload takes good files and refuses others, an engine that stands still is started again, an
# upgrade leaves the node alone, and a removal stops it.
set -eu
export DEBIAN_FRONTEND=noninteractive

fail() {
    echo "$1"
    systemctl status --no-pager quorate || true
    journalctl --no-pager -q -u quorate | tail -n 40
    exit 1
}
soon() {
    for _ in $(seq 1200); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    fail "in vain: $*"
}
of() { systemctl show --property "$1" --value quorate; }
runs() { [ "$(systemctl is-active quorate)" = active ]; }
ready() { of StatusText | grep -q '^ready'; }

apt-get install -y /this.deb >/dev/null
! runs || fail "it runs although nobody asked for it"
systemctl start quorate
! runs || fail "it runs without a file"
cat > /etc/quorate/node.toml <<'END'
cluster = "machine"
epoch = 1
node = "a"
data_dir = "/var/lib/quorate"
[listen]
clients = "127.0.0.1:7420"
peers = "127.0.0.1:7520"
local = "/run/quorate/node.sock"
[[members]]
name = "a"
peers = "127.0.0.1:7520"
[[pools]]
name = "demo"
units = 2
END
install -d -m 700 -o quorate -g quorate /var/lib/quorate
runuser -u quorate -- quorate init --config /etc/quorate/node.toml
systemctl enable --now quorate
runs || fail "it does not run"
soon ready
[ "$(quorate run demo -- sh -c 'echo $QUORATE_COUNT')" = 1 ] || fail "no client is served"
quorate pools --server unix:/run/quorate/node.sock >/dev/null
echo "it starts, says that it is ready, and serves"

cp /etc/quorate/node.toml /trial/good.toml
echo 'nonsense = 1' >> /etc/quorate/node.toml
! systemctl reload quorate 2>/dev/null || fail "a bad file was taken"
runs || fail "a bad file stopped it"
cp /trial/good.toml /etc/quorate/node.toml
systemctl reload quorate || fail "a good file was refused"
echo "it reloads a good file and refuses another"

before=$(of MainPID)
apt-get install -y /next.deb >/dev/null
[ "$(of MainPID)" = "$before" ] || fail "the upgrade restarted it"
kill -STOP "$before"
restarted() { [ "$(of NRestarts)" = 1 ] && ready; }
soon restarted
echo "an upgrade leaves it alone, and one that stands still is started again"

systemctl restart quorate
soon ready
systemd-analyze security --no-pager quorate | tail -n 1
apt-get remove -y quorate >/dev/null
! runs || fail "it runs although its program is gone"
[ ! -e /etc/systemd/system/multi-user.target.wants/quorate.service ] || fail "it is still enabled"
apt-get purge -y quorate >/dev/null
[ -s /etc/quorate/node.toml ] && [ -d /var/lib/quorate/ ] || fail "a purge took its promises"
echo "a removal stops it and leaves its promises"
