#!/usr/bin/env bash
# A Slurm of one node for the tests: Debian's packages, root, no systemd, no accounting. Does nothing where it runs already.
#   single_node.sh          start it (exit 3 with one line on why, where that cannot be done)
#   single_node.sh stop     end its daemons
set -euo pipefail
run=/run/slurm log=/var/log/slurm spool=/var/spool/slurm
cannot() { echo "no Slurm here: $*"; exit 3; }
alive() { [ -s "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
stop() { if alive "$1"; then kill "$(cat "$1")"; for _ in $(seq 100); do alive "$1" || break; sleep .1; done; fi; }
within() { local tries=$1; shift; for _ in $(seq "$tries"); do "$@" >/dev/null 2>&1 && return 0; sleep .1; done; return 1; }

if [ "${1:-}" = stop ]; then
  for daemon in $run/slurmd.pid $run/slurmctld.pid /run/munge/munged.pid; do stop $daemon; done
  exit 0
fi
[ "$(id -u)" = 0 ] || cannot "needs root"

packages="slurmctld slurmd slurm-client munge"
if ! dpkg -s $packages >/dev/null 2>&1; then
  command -v apt-get >/dev/null || cannot "needs apt-get"
  apt-get -qq update >/dev/null 2>&1 || true
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $packages >/tmp/slurm-apt.log 2>&1 ||
    cannot "apt-get: $(tail -1 /tmp/slurm-apt.log)"
fi

# for the tests that start a Slurm with accounting of their own (cluster.py)
accounting="slurmdbd mariadb-server-core"
dpkg -s $accounting >/dev/null 2>&1 ||
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $accounting >>/tmp/slurm-apt.log 2>&1 ||
  echo "no accounting: $(tail -1 /tmp/slurm-apt.log)"

# munge runs as its own user and is strict about who owns what
install -d -o munge -g munge -m 0700 /etc/munge /var/lib/munge /var/log/munge
install -d -o munge -g munge -m 0755 /run/munge
[ -s /etc/munge/munge.key ] || head -c 1024 /dev/urandom >/etc/munge/munge.key
chown munge:munge /etc/munge/munge.key
chmod 0400 /etc/munge/munge.key
munge_answers() { munge -n </dev/null | unmunge; }
if ! munge_answers >/dev/null 2>&1; then
  rm -f /run/munge/munge.socket.2*
  setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged
fi
within 50 munge_answers || cannot "munge does not answer"

# small limits on purpose: arrays are split at MaxArraySize; a requeued job starts again after cred_expire seconds
install -d /etc/slurm $run $log $spool/d $spool/ctld
echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf # slurmd ends where /sys/fs/cgroup is absent otherwise
memory=$(awk '/MemTotal/{print int($2/1024*0.9)}' /proc/meminfo)
cat >/etc/slurm/slurm.conf.new <<CONF
ClusterName=tests
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.pid
SlurmctldLogFile=$log/slurmctld.log
SlurmdLogFile=$log/slurmd.log
StateSaveLocation=$spool/ctld
SlurmdSpoolDir=$spool/d
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=500
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MinJobAge=60
MaxArraySize=16
MailProg=/bin/true
MpiDefault=none
NodeName=slurmtests NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=${SLURM_TEST_CPUS:-4} RealMemory=$memory
PartitionName=debug Nodes=slurmtests Default=YES MaxTime=INFINITE DefaultTime=60 State=UP
CONF
if ! cmp -s /etc/slurm/slurm.conf.new /etc/slurm/slurm.conf; then stop $run/slurmd.pid; stop $run/slurmctld.pid; fi
mv /etc/slurm/slurm.conf.new /etc/slurm/slurm.conf

# -c: nothing of an earlier cluster is taken over
alive $run/slurmctld.pid || { rm -rf ${spool:?}/ctld/* ${spool:?}/d/*; /usr/sbin/slurmctld -c; }
controller_up() { scontrol ping | grep -q 'is UP'; }
within 100 controller_up || cannot "slurmctld does not answer"
alive $run/slurmd.pid || /usr/sbin/slurmd -N slurmtests || cannot "slurmd: $(tail -1 $log/slurmd.log)"
ready() {
  case "$(sinfo -h -o %T)" in
    idle | mixed | allocated) return 0 ;;
    down* | drain*) scontrol update NodeName=slurmtests State=RESUME ;;
  esac
  return 1
}
within 200 ready || cannot "the node does not come up: $(sinfo -h -R)"
srun -Q -n1 -t1 true
echo "Slurm $(sinfo --version | cut -d' ' -f2) is up: $(sinfo -h -o '%N, %c processors, %m MB')"
