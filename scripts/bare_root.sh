#!/usr/bin/env bash
# Assay on a bare machine: a root of Debian 12 or Ubuntu 24.04 as debootstrap makes it, without CUDA, without a locale, without a compiler,
# and this repository's HEAD cloned into it. Run it as root. Ends with the status of what it ran.
#
#   scripts/bare_root.sh debian12                    the demo as root, then as an ordinary user with sudo, each on a root of its own
#   scripts/bare_root.sh ubuntu24.04 --failures      what the set-up says without network, sudo, room on the disk, a wheel: a table
#   scripts/bare_root.sh debian12 --failures -- no_sudo          some of its rows
#   scripts/bare_root.sh debian12 --as user -- scripts/test.sh release -LE corpus
#   scripts/bare_root.sh debian12 --keep it -- bash  a shell there; what it leaves is found again by --keep it
#
# --as root|user|plain   user may use sudo without a password, plain has none        --no-network
# --keep NAME            go on with what an earlier run of that name left            --disk SIZE    all that it may write, e.g. 64m
# --packages             what the scripts need of the distribution is there already  --env NAME=VALUE
# --ccache DIR           a compiler cache, so that the second build is cheap (this installs ccache there)
# --mirror URL      where packages come from; needed where this machine is of another family    --security URL  of corrections
# --at DIR               where roots lie (default /var/tmp/assay-bare); not on an overlay
#
# A root is made once, of the mirror that this machine's apt uses where it is of the same family, and never written again: each run gets an
# overlay of its own. It is entered by pivot_root, with processes, /dev/shm and mounts of its own. Not by chroot: Linux makes no user
# namespaces in one, and the jail needs them (`assay doctor` says so).
set -euo pipefail
self=$(readlink -f "$0")
source_root=$(dirname "$(dirname "$self")")
. "$source_root/scripts/lib/setup.sh"

# enter: inside of mount, process and perhaps network namespaces of its own; what it needs is in the environment. Does not return.
enter() {
  local mount=$at/mount home=/root node
  [ "$as" = root ] || home=/home/u
  mkdir -p "$mount"
  if [ -n "$disk" ]; then mount -t tmpfs -o "size=$disk" disk "$upper"; fi
  mkdir -p "$upper/files" "$upper/work"
  mount -t overlay -o "lowerdir=$lower,upperdir=$upper/files,workdir=$upper/work" root "$mount" \
    || die "cannot lay an overlay over $lower: name a folder on a plain file system with --at"
  cd "$mount"
  mount -t proc proc proc
  mount --rbind /sys sys
  mount -t tmpfs -o mode=755 dev dev
  for node in null zero full random urandom tty; do touch "dev/$node" && mount --bind "/dev/$node" "dev/$node"; done
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  mount -t tmpfs -o mode=1777 shm dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ln -s fd/0 dev/stdin && ln -s fd/1 dev/stdout && ln -s fd/2 dev/stderr
  if [ -z "$network" ]; then ip link set lo up 2>/dev/null || true; fi
  # What a full disk must not keep us from is done before it is full.
  if [ ! -e ".$home/assay" ]; then
    git clone -q --upload-pack "git -c safe.directory=* upload-pack" "file://$source_root" ".$home/assay" || die "the clone does not fit"
    [ "$as" = root ] || chown -R 1000:1000 ".$home/assay"
  fi
  if [ -n "$ccache" ]; then
    mkdir -p ./ccache && mount --bind "$ccache" ./ccache
    passed+=(CCACHE_DIR=/ccache "CCACHE_BASEDIR=$home" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=locale,time_macros)
    [ "$as" = root ] || passed+=(CCACHE_READONLY=1 CCACHE_TEMPDIR=/tmp)
  fi
  mkdir -p .left && pivot_root . .left && umount -l /.left && rmdir /.left
  cd "$home/assay"
  local -a to=(env -i "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "HOME=$home" "TERM=${TERM:-dumb}" "${passed[@]}" "$@")
  if [ "$as" = root ]; then exec "${to[@]}"; fi
  exec setpriv --reuid=1000 --regid=1000 --init-groups "${to[@]}"
}

if [ "${1:-}" = --enter ]; then
  shift
  mapfile -t passed <<<"$passed_lines"
  enter "$@"
fi

# --- what is asked for
distribution=${1:-}
case $distribution in
  debian12) suite=bookworm components=main script=() ;;
  # Where debootstrap is older than the suite, its script is that of all Ubuntus.
  ubuntu24.04) suite=noble components=main,universe
    script=(/usr/share/debootstrap/scripts/gutsy) ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$self"; exit 2 ;;
esac
shift
mirror= security=
export at=/var/tmp/assay-bare as=root disk= network=yes ccache= lower= upper=
keep= packages= failures= environment=()
while [ $# -gt 0 ]; do
  case $1 in
    --as) as=$2; shift ;;
    --mirror) mirror=$2; shift ;;
    --security) security=$2; shift ;;
    --at) at=$(mkdir -p "$2" && readlink -f "$2"); shift ;;
    --keep) keep=$2; shift ;;
    --disk) disk=$2; shift ;;
    --ccache) ccache=$(readlink -f "$2"); shift ;;
    --env) environment+=("$2"); shift ;;
    --no-network) network= ;;
    --packages) packages=yes ;;
    --failures) failures=yes ;;
    --) shift; break ;;
    *) die "unknown: $1; see the head of $0" ;;
  esac
  shift
done
case $as in root|user|plain) ;; *) die "--as root, user or plain" ;; esac
[ "$(id -u)" -eq 0 ] || die "mounts need root: sudo $0 ..."
base=$at/$distribution
for name in http_proxy https_proxy no_proxy; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done

# own_mirror LABEL: what this machine's apt takes packages of that label from.
own_mirror() {
  apt-get indextargets --format '$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | sed -n "s/^$1|//p" | head -1
}

# The key of Ubuntu's archive, held to its fingerprint: Debian 12 has no package of it.
ubuntu_keyring() {
  local ring=/usr/share/keyrings/ubuntu-archive-keyring.gpg fingerprint=F6ECB3762474EDA9D21B7022871920D1991BC93C
  if [ -f $ring ]; then echo $ring; return; fi
  install_packages gpg curl ca-certificates xz-utils
  local scratch=$at/keyring file
  mkdir -p "$scratch"
  file=$(curl -fsS "$mirror/dists/$suite/main/binary-amd64/Packages.xz" | xz -dc | sed -n '/^Package: ubuntu-keyring$/,/^$/s/^Filename: //p')
  curl -fsS -o "$scratch/keyring.deb" "$mirror/$file"
  dpkg-deb -x "$scratch/keyring.deb" "$scratch/files"
  mkdir -p -m 700 "$scratch/gpg"
  gpg -q --homedir "$scratch/gpg" --no-default-keyring --keyring "$scratch/files$ring" --export $fingerprint >"$scratch/one.gpg"
  [ -s "$scratch/one.gpg" ] || die "$mirror has no key of Ubuntu's archive ($fingerprint)"
  echo "$scratch/one.gpg"
}

make_base() {
  [ ! -f "$base/made" ] || return 0
  install_packages debootstrap git
  rm -rf "$base" && mkdir -p "$base"
  local own keyring=() log=$base/debootstrap.log
  if [ "$suite" = noble ]; then
    own=$(own_mirror Ubuntu) && mirror=${mirror:-$own}
    [ -n "$mirror" ] || die "this machine's apt takes nothing from Ubuntu: name the archive with --mirror URL"
    keyring=(--keyring "$(ubuntu_keyring)")
    [ ! -e "/usr/share/debootstrap/scripts/$suite" ] || script=()
  else
    own=$(own_mirror Debian) && mirror=${mirror:-$own}
    own=$(own_mirror Debian-Security) && security=${security:-$own}
    [ -n "$mirror" ] || die "this machine's apt takes nothing from Debian: name the archive with --mirror URL"
  fi
  say "making a root of $distribution from $mirror in $base"
  debootstrap --variant=minbase "--components=$components" "${keyring[@]}" "$suite" "$base/root" "$mirror" "${script[@]}" >"$log" 2>&1 \
    || { tail -3 "$log" >&2; die "$(explain "debootstrap failed; see $log" <"$log")"; }
  {
    printf 'deb %s %s %s\n' "$mirror" $suite "${components//,/ }" "$mirror" $suite-updates "${components//,/ }"
    [ -z "$security" ] || printf 'deb %s %s %s\n' "$security" $suite-security "${components//,/ }"
  } >"$base/root/etc/apt/sources.list"
  # Ubuntu's user 1000 may be there already under another name.
  chroot "$base/root" bash -c 'userdel -r ubuntu; useradd --uid 1000 --create-home --shell /bin/bash u' 2>/dev/null
  # Where this machine's network is seen through a certificate of its own, that root has it as well.
  if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    mkdir -p "$base/root/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/*.crt "$base/root/usr/local/share/ca-certificates/"
  fi
  touch "$base/made"
}

# in_root LOWER UPPER COMMAND...: its status is the command's.
in_root() {
  export lower=$1 upper=$2
  shift 2
  cp -L /etc/resolv.conf "$base/root/etc/resolv.conf"
  local apart=(--mount --pid --fork --kill-child --propagation private)
  [ -n "$network" ] || apart+=(--net)
  passed_lines=$(printf '%s\n' LANG= "${environment[@]}") unshare "${apart[@]}" bash "$self" --enter "$@"
}

# layer NAME COMMAND: what that command leaves on the bare root, made once. Prints the overlay's lower folders.
layer() {
  local made=$base/layers/$1
  if [ ! -f "$made/made" ]; then
    rm -rf "$made" && mkdir -p "$made"
    (as=root disk= network=yes ccache=; in_root "$base/root" "$made" bash -c "set -e; $2" >"$made.log" 2>&1) \
      || { tail -3 "$made.log" >&2; die "$(explain "the layer $1 failed; see $made.log" <"$made.log")"; }
    rm -rf "$made/files/root/assay"
    touch "$made/made"
  fi
  echo "$made/files"
}
quiet_install='export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; apt-get install -y -qq --no-install-recommends'

# run COMMAND...: on a fresh overlay, or one that is kept.
run() {
  local lowers=$base/root number=$BASHPID
  if [ "$as" = user ]; then
    lowers=$(layer sudo "$quiet_install sudo; echo 'u ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/u"):$lowers
  fi
  if [ -n "$packages" ]; then
    lowers=$(layer packages '. scripts/lib/setup.sh; install_packages "${ASSAY_PACKAGES[@]}" python3 python3-pip'):$lowers
  fi
  if [ -n "$ccache" ]; then lowers=$(layer ccache "$quiet_install ccache"):$lowers; fi
  local over=$base/runs/${keep:-$number} status=0
  mkdir -p "$over"
  # Two mounts of one overlay's files spoil them; whoever runs there holds this as long as it runs.
  exec 8>"$over/held"
  flock -n 8 || die "$over is in use by an earlier run, which goes on"
  in_root "$lowers" "$over" "$@" || status=$?
  if [ -z "$keep" ]; then rm -rf "$over"; fi
  return $status
}

failed=0
# expect NAME WORDS OPTIONS... -- COMMAND...: ends with status 3, and says so.
expect() {
  local name=$1 words=$2 said status=0
  shift 2
  case " ${only[*]} " in *" $name "*|"  ") ;; *) return 0 ;; esac
  said=$(
    while [ "$1" != -- ]; do
      case $1 in
        --as) as=$2; shift ;;
        --disk) disk=$2; shift ;;
        --env) environment+=("$2"); shift ;;
        --no-network) network= ;;
        --packages) packages=yes ;;
      esac
      shift
    done
    shift
    run "$@" 2>&1 </dev/null
  ) || status=$?
  if [ $status -eq 3 ] && grep -qF -- "$words" <<<"$said"; then
    printf 'ok     %-22s %s\n' "$name" "$(grep '^error: ' <<<"$said" | tail -1)"
  else
    printf 'FAILED %-22s status %s, wanted 3 and "%s"; said:\n%s\n' "$name" $status "$words" "$(tail -5 <<<"$said")"
    failed=1
  fi
}

make_base
if [ -n "$failures" ]; then
  only=("$@")
  expect no_network             'there is no network'                  --no-network -- scripts/demo.sh
  expect no_sudo                'is not root and has no sudo'          --as plain -- scripts/demo.sh
  expect disk_full_packages     'the disk is full'                     --disk 300m -- scripts/demo.sh
  expect wheels_no_network      'there is no network'                  --packages --no-network -- scripts/demo.sh
  expect wheel_not_found        'NVIDIA has no such wheel'             --packages --env PIP_NO_INDEX=1 -- scripts/demo.sh
  expect disk_full_wheels       'the disk is full'                     --packages --disk 100m -- scripts/demo.sh
  expect disk_full_build        'the disk is full'                     --packages --disk 64m --env CUDA_HOME=/cuda -- bash -c \
    'mkdir -p /cuda/include /cuda/lib64; touch /cuda/include/{nvrtc,cuda_bf16}.h /cuda/lib64/libnvrtc.so; fallocate -l 30m /filled; scripts/demo.sh'
  expect no_sudoers             'may not use sudo here'                --as user -- bash -c 'sudo rm /etc/sudoers.d/u; scripts/demo.sh'
  exit $failed
fi
if [ $# -gt 0 ]; then
  run "$@"
  exit
fi
for as in root user; do
  say "scripts/demo.sh as $as on a bare $distribution"
  run scripts/demo.sh
done
