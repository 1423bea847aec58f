# Sourced after lib.sh and netns.sh: a real Slurm cluster whose nodes are the bed's hosts. munge,
# slurmctld and slurmd run with private files inside the namespaces, on Slurm's usual ports.

# slurm_up NODES [CPUS]: a cluster with one partition; CPUS (4) are declared a node.
slurm_up() {
    need_root
    PATH=$PATH:/usr/sbin:/sbin
    need munged slurmctld slurmd sbatch srun
    hosts_up "$1"
    bed_slurm=$tmp/slurm
    mkdir -p "$bed_slurm/state"
    write_slurm_conf "$1" "${2:-4}"
    start_munge
    # Slurm looks for its configuration here; the variable reaches every daemon and command.
    export SLURM_CONF="$bed_slurm/slurm.conf"
    at_exit slurm_down
    i=1
    while [ $i -le "$1" ]; do
        mkdir -p "$bed_slurm/spool-$(host_name $i)" "$bed_slurm/tmp-$(host_name $i)"
        [ $i -gt 1 ] || on_host 1 slurmctld -c
        on_host $i slurmd -N "$(host_name $i)"
        i=$((i + 1))
    done
    wait_until slurm_ready "$1" || { cat "$bed_slurm"/*.log; fail 'Slurm does not start'; }
}

write_slurm_conf() {
    cat >"$bed_slurm/slurm.conf" <<CONF
ClusterName=dtrain
SlurmctldHost=$(host_name 1)
AuthType=auth/munge
AuthInfo=socket=$bed_slurm/munge.sock
CryptoType=crypto/munge
SlurmUser=root
StateSaveLocation=$bed_slurm/state
SlurmdSpoolDir=$bed_slurm/spool-%n
TmpFS=$bed_slurm/tmp-%n
SlurmctldPidFile=$bed_slurm/slurmctld.pid
SlurmdPidFile=$bed_slurm/slurmd-%n.pid
SlurmctldLogFile=$bed_slurm/slurmctld.log
SlurmdLogFile=$bed_slurm/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=3600
KillWait=5
NodeName=DEFAULT CPUs=$2 Sockets=1 CoresPerSocket=$2 ThreadsPerCore=1
$(i=1; while [ $i -le "$1" ]; do echo "NodeName=$(host_name $i)"; i=$((i + 1)); done)
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE
CONF
    echo 'CgroupPlugin=cgroup/v1' >"$bed_slurm/cgroup.conf"
}

# One munged serves every host: its socket is a path, which network namespaces share.
start_munge() {
    dd if=/dev/urandom of="$bed_slurm/munge.key" bs=1024 count=1 2>/dev/null
    chmod 600 "$bed_slurm/munge.key"
    on_host 1 munged --force --socket="$bed_slurm/munge.sock" --key-file="$bed_slurm/munge.key" \
        --pid-file="$bed_slurm/munged.pid" --log-file="$bed_slurm/munged.log" \
        --seed-file="$bed_slurm/munge.seed" || fail 'munged does not start'
}

slurm_ready() { [ "$(on_host 1 sinfo -h -t idle -o %D)" = "$1" ]; }

# slurm COMMAND...: sbatch, squeue and the like, on the first host.
slurm() { on_host 1 "$@"; }

# slurm_state JOB: its state, as PENDING, RUNNING, COMPLETED.
slurm_state() { slurm scontrol -o show job "$1" | sed 's/.*JobState=\([A-Z_]*\).*/\1/'; }
slurm_is() { [ "$(slurm_state "$1")" = "$2" ]; }

slurm_down() {
    slurm scancel --user root --signal=KILL >/dev/null 2>&1
    for pid in "$bed_slurm"/slurm*.pid "$bed_slurm"/munged.pid; do
        [ -f "$pid" ] && kill "$(cat "$pid")"
    done
    wait_until slurm_gone
}
slurm_gone() { ! ls "$bed_slurm"/slurm*.pid; }

# slurm_again JOB: a job that queued itself again starts soon after nothing is left of it, not after
# Slurm's pause of two minutes. (slurmd refuses a start in the second in which the job was ended.)
slurm_again() {
    wait_until slurm_is "$1" PENDING || fail "job $1 is $(slurm_state "$1"), not pending"
    wait_until slurm_swept "$1" || fail "a step of job $1 does not end"
    slurm scontrol update jobid="$1" starttime=now+3
}
slurm_swept() { ! ls -d "$bed_slurm"/spool-*/*[_.]"$1".* "$bed_slurm"/spool-*/job*"$1"; }

# slurm_completes JOB: fails with Slurm's own logs if the job does not.
slurm_completes() {
    wait_until slurm_is "$1" COMPLETED && return
    tail -n 20 "$bed_slurm"/slurm*.log
    fail "job $1 is $(slurm_state "$1")"
}
