#!/bin/sh
# docs/guides/fences.md, "A service of systemd", inside a machine that systemd has started: a cluster
# of two nodes, and the unit of the guide (/trial/unit) on what stands for two machines. The service
# says its fence with whatever it writes, once more when it is told to stop.
set -eu

fail() {
    echo "$1"
    tail -n 20 /srv/* || true
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

for n in 1 2; do ip addr add 10.0.0.$n/32 dev lo; done
mkdir -p /etc/quorate /run/quorate /srv
cd /etc/quorate
quorate cert new-ca shop --dir .
quorate cert node a --address 10.0.0.1 --dir .
quorate cert node b --address 10.0.0.2 --dir .
quorate token new services --may see,claim --pools '*-one' --secret-file only-one.token > tokens.toml
node() {
    cat <<END
cluster = "shop"
epoch = 1
node = "$1"
data_dir = "/var/lib/quorate-$1"
[listen]
clients = "$2:7420"
peers = "$2:7520"
local = "/run/quorate/$1.sock"
[tls]
ca = "/etc/quorate/ca.crt"
cert = "/etc/quorate/node-$1.crt"
key = "/etc/quorate/node-$1.key"
[[members]]
name = "a"
peers = "10.0.0.1:7520"
[[members]]
name = "b"
peers = "10.0.0.2:7520"
[[pools]]
name = "only-one"
units = 1
lease = "1h"
[[pools]]
name = "soon-one"
units = 1
lease = "2s"
END
    cat tokens.toml
}
node a 10.0.0.1 > a.toml
node b 10.0.0.2 > b.toml
for name in a b; do
    quorate init --config $name.toml
    systemd-run --quiet --unit node-$name --property Type=notify \
        quorate serve --config /etc/quorate/$name.toml
done
export QUORATE_SERVER=unix:/run/quorate/a.sock
soon quorate pools

cat > /usr/bin/the-service <<'END'
#!/bin/sh
save() (
    exec 9>>/srv/fence
    flock 9
    seen=$(tail -n 1 /srv/fence)
    if [ "${seen:-0}" -le "$QUORATE_FENCES" ]; then
        echo "$QUORATE_FENCES" >&9
        echo "$MACHINE" >> /srv/written
    else
        echo "$MACHINE" >> /srv/refused
        exit 75
    fi
)
trap 'save; exit' TERM
while save; do sleep 0.2; done
END
chmod +x /usr/bin/the-service
# machine NAME POOL: one of those that all have the same unit.
machine() {
    { sed "s/run only-one /run $2 /" /trial/unit; echo "Environment=MACHINE=$1"; } \
        > "/etc/systemd/system/$1.service"
}
machines() {
    rm -f /srv/*
    machine one "$1"
    machine two "$1"
    systemctl daemon-reload
    systemctl start one
    soon writes one
    systemctl start two
    soon waits "$1"
}
main() { systemctl show --property MainPID --value "$1"; }
writes() { [ "$(tail -n 1 /srv/written)" = "$1" ]; }
waits() { quorate queue "$1" | grep -q the-service; }

# Nobody would live to see the end of this lease.
machines only-one
! grep -q two /srv/written || fail "both of them run"
systemctl stop one
! systemctl is-failed --quiet one || fail "a service that is stopped has failed"
soon writes two
[ ! -e /srv/refused ] || fail "one was refused, although nobody was late"
systemctl stop two
echo "a service that is stopped makes room at once"

machines soon-one
systemctl kill --signal STOP one
soon writes two
# The service wakes up before its wrapper can see that it is late.
group=$(systemctl show --property ControlGroup --value one)
for process in $(grep -v "^$(main one)$" "/sys/fs/cgroup$group/cgroup.procs"); do
    kill -CONT "$process"
done
soon grep -q one /srv/refused
systemctl kill --signal CONT one
echo "a service that stood still is followed, and what it writes late is refused"
soon waits soon-one
kill -KILL "$(main two)"
soon writes one
soon waits soon-one
! grep -q two /srv/refused || fail "two was late, although it was killed"
sort -c -n /srv/fence || fail "a fence went back"
echo "a service that is killed is followed, and waits in its turn"
