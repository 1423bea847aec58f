# Sourced after lib.sh: several hosts on one machine. A host is a set of namespaces (network, host
# name, mounts) that a sleeping process holds; the hosts' links meet in a bridge that has a network
# namespace of its own. Nothing has a name outside, so beds cannot collide, and killing the holders
# leaves nothing behind. Needs root, iproute2 and util-linux.

# hosts_up N [RATE]: hosts $(host_name 1)..N, links limited to RATE (as tc has it: 1gbit), if given;
# the bank's host is the first. Skips the test where that cannot be done.
hosts_up() {
    need_root
    need ip tc nsenter unshare
    unset OMPI_MCA_mtl # Open MPI as it comes
    bed=$tmp/hosts
    mkdir "$bed"
    [ -e /etc/hosts ] || skip 'there is no /etc/hosts'
    unshare --net --mount true 2>/dev/null || skip 'namespaces cannot be made here'
    at_exit hosts_down
    hold switch
    in_host switch ip link add bridge type bridge 2>"$tmp/err" ||
        skip "no bridge: $(cat "$tmp/err")"
    in_host switch ip link set bridge up
    echo '127.0.0.1 localhost' >"$bed/hosts"
    i=1
    while [ $i -le "$1" ]; do
        add_host $i "${2:-}" || fail "host $i"
        i=$((i + 1))
    done
    write_agent
    hosts_slots $(yes 1 | head -n "$1")
}

host_name() { echo "dt$$-$1"; }

# hold NAME: namespaces kept by a process that sleeps; its pid in $bed/NAME.
hold() {
    unshare --net --uts --ipc --mount sleep 3600 >/dev/null 2>&1 </dev/null &
    echo $! >"$bed/$1"
    wait_until entered "$bed/$1" || fail "namespaces of $1"
}
entered() {
    [ "$(readlink "/proc/$(cat "$1")/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] &&
        grep -q sleep "/proc/$(cat "$1")/cmdline"
}

# in_host NAME COMMAND...
in_host() {
    pid=$(cat "$bed/$1")
    shift
    nsenter -t "$pid" --net --uts --ipc --mount --root --wd="$PWD" "$@"
}

# on_host I COMMAND...
on_host() { host=$(host_name "$1"); shift; in_host "$host" "$@"; }

add_host() {
    name=$(host_name "$1")
    hold "$name"
    pid=$(cat "$bed/$name")
    echo "10.77.0.$1 $name" >>"$bed/hosts"
    in_host switch ip link add "port$1" type veth peer name eth0 netns "$pid" &&
        in_host switch ip link set "port$1" master bridge up &&
        in_host "$name" hostname "$name" &&
        in_host "$name" ip link set lo up &&
        in_host "$name" ip addr add "10.77.0.$1/24" dev eth0 &&
        in_host "$name" ip link set eth0 up &&
        in_host "$name" mount --bind "$bed/hosts" /etc/hosts &&
        in_host "$name" mount -t tmpfs shm /dev/shm || return 1
    [ -z "$2" ] || limit_link "$1" "$2"
}

# limit_link I RATE: both ways of host I's link.
limit_link() {
    in_host "$(host_name "$1")" tc qdisc replace dev eth0 root tbf rate "$2" burst 256kb latency \
        50ms &&
        in_host switch tc qdisc replace dev "port$1" root tbf rate "$2" burst 256kb latency 50ms
}

# hosts_rate RATE: of all links from now on.
hosts_rate() {
    i=1
    while [ -e "$bed/$(host_name $i)" ]; do
        limit_link $i "$1" || fail "the link of host $i"
        i=$((i + 1))
    done
}

# What mpirun calls in place of ssh: AGENT HOST COMMAND.
write_agent() {
    cat >"$bed/agent" <<AGENT
#!/bin/sh
pid=\$(cat "$bed/\$1") && shift &&
    exec nsenter -t "\$pid" --net --uts --ipc --mount --root --wd="\$PWD" sh -c "\$*"
AGENT
    chmod +x "$bed/agent"
}

# hosts_slots N1 N2 ...: ranks that each host takes, for the jobs that follow.
hosts_slots() {
    hostfile=$bed/hostfile
    i=0
    for slots; do
        i=$((i + 1))
        echo "$(host_name $i) slots=$slots"
    done >"$hostfile"
}

# hosts_job NP COMMAND...: mpirun on the first host, at most $limit seconds. No flag but those that
# reach the hosts.
hosts_job() {
    ranks=$1
    shift
    on_host 1 mpirun --timeout "$limit" --hostfile "$hostfile" --mca plm rsh \
        --mca plm_rsh_agent "$bed/agent" -np "$ranks" "$@"
}

# host_sent I: bytes that host I has sent on its link so far.
host_sent() { on_host "$1" awk '$1 == "eth0:" { print $10 }' /proc/net/dev; }

# hosts_hide I DIR: on host I the directory is empty.
hosts_hide() { on_host "$1" mount -t tmpfs none "$2"; }

hosts_down() {
    for holder in "$bed"/switch "$bed/$(host_name '')"*; do
        [ -f "$holder" ] && kill "$(cat "$holder")" 2>/dev/null
    done
}
