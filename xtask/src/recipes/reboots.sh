#!/bin/sh
# docs/guides/recipes.md, "Reboots after unattended upgrades", on a machine that systemd has started
# and that really starts anew: the units of the guide (/trial/units), the script (/trial/recipe), and
# a node that has the slot on its disk, on the same machine for want of another.
set -eu

fail() {
    echo "$1"
    journalctl --no-pager -q | tail -n 60
    exit 1
}
soon() {
    for _ in $(seq 600); do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    fail "in vain: $*"
}
export QUORATE_SERVER=unix:/run/node.sock
serve() {
    ip addr add 10.0.0.1/32 dev lo
    systemd-run --quiet --unit node --property Type=notify quorate serve --config /etc/quorate/a.toml
    soon quorate pools
}
held() { [ "$(quorate holders reboots-rack7 | grep -c 'reboot of')" = "$1" ]; }

if [ -e /trial/before ]; then
    [ ! -e /run/reboot-required ] || fail "the machine did not start anew"
    serve
    soon held 1
    echo "a slot outlives the reboot"
    systemctl start multi-user.target
    soon held 0
    systemctl start reboot-when-free
    held 0 || fail "it wants a slot, although no reboot is due"
    echo "a machine that is back gives its slot to the next"
    exit
fi

rm -rf /etc/quorate
mkdir /etc/quorate
cd /etc/quorate
quorate cert new-ca rack --dir .
quorate cert node a --address 10.0.0.1 --dir .
quorate token new reboots --may see,claim --pools 'reboots-*' --secret-file reboots.token > token.toml
cat - token.toml > a.toml <<'END'
cluster = "rack"
epoch = 1
node = "a"
data_dir = "/var/lib/quorate"
[listen]
clients = "10.0.0.1:7420"
peers = "10.0.0.1:7520"
local = "/run/node.sock"
[tls]
ca = "/etc/quorate/ca.crt"
cert = "/etc/quorate/node-a.crt"
key = "/etc/quorate/node-a.key"
[[members]]
name = "a"
peers = "10.0.0.1:7520"
[[pools]]
pattern = "reboots-*"
units = 1
protocol = "table"
durable = true
standing = true
overdue = "30m"
END
quorate init --config a.toml
serve
install -m 755 /trial/recipe /usr/local/sbin/reboot-when-free
awk '/^# \/etc/ { file = $2; next } { print > file }' /trial/units
systemctl daemon-reload
systemctl enable --quiet reboot-done.service reboot-when-free.timer
systemd-analyze verify reboot-when-free.timer
touch /run/reboot-required /trial/before
systemctl start --no-block reboot-when-free
soon false
