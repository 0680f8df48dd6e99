#!/usr/bin/env bash
# What demo.sh and test.sh say on machines that lack something, tried on this one: the toolkit is hidden (ASSAY_HIDE_CUDA=1), and programs
# that fail as they do elsewhere stand before the real ones on the PATH. No network, nothing is installed.
set -uo pipefail
source_root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# stub NAME SCRIPT: a program of that name.
stub() {
  mkdir -p "$scratch/bin"
  printf '#!/bin/bash\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

# expect NAME STATUS WORDS COMMANDS: runs COMMANDS with setup.sh in an empty folder; it must end so and say so.
expect() {
  local name=$1 status=$2 words=$3 commands=$4 said got
  rm -rf "$scratch/tree"
  mkdir -p "$scratch/tree"
  said=$(cd "$scratch/tree" && PATH="$scratch/bin:$PATH" bash -c "set -euo pipefail; . '$source_root/scripts/lib/setup.sh'; $commands" 2>&1)
  got=$?
  if [ $got -ne "$status" ] || ! grep -qF -- "$words" <<<"$said"; then
    printf 'FAILED %s: status %s, wanted %s and "%s"; said:\n%s\n' "$name" "$got" "$status" "$words" "$said"
    failures=$((failures + 1))
  else
    printf 'ok     %s\n' "$name"
  fi
  rm -rf "$scratch/bin"
}

missing='dpkg-query() { return 1; }; install_packages some-package'
wheels='export ASSAY_HIDE_CUDA=1; install_packages() { :; }; provide_cuda; echo "root $ASSAY_CUDA_ROOT"'

# Packages.
stub apt-get 'echo "E: Failed to fetch http://mirror.example/x  Temporary failure resolving mirror.example" >&2; exit 100'
stub sudo 'exec "$@"'
expect no_network 3 'there is no network' "$missing"
stub apt-get 'case " $* " in *" install "*) echo "E: Unable to locate package some-package"; exit 100;; esac'
stub sudo 'exec "$@"'
expect old_distribution 3 'Debian 12, Ubuntu 24.04 or newer' "$missing"
stub apt-get 'case " $* " in *" install "*) echo "E: You don'"'"'t have enough free space in /var/cache/apt/archives/."; exit 100;; esac'
stub sudo 'exec "$@"'
expect disk_full 3 'the disk is full' "$missing"
stub apt-get 'echo "E: Could not get lock /var/lib/dpkg/lock-frontend" >&2; exit 100'
stub sudo 'exec "$@"'
expect busy 3 'another package manager is at work' "$missing"
stub id 'echo 1000'
stub apt-get 'exit 0'
stub sudo 'echo "sudo: a terminal is required to read the password" >&2; exit 1'
expect sudo_refuses 3 'may not use sudo here' "$missing"
warning='echo "sudo: unable to resolve host bare: Name or service not known" >&2'
stub id 'echo 1000'
stub apt-get 'exit 0'
stub sudo "$warning; echo 'sudo: a password is required' >&2; exit 1"
expect sudo_refuses_unnamed 3 'may not use sudo here' "$missing"
stub id 'echo 1000'
stub apt-get 'case " $* " in *" install "*) echo "E: dpkg was interrupted"; exit 100;; esac'
stub sudo "$warning; exec \"\$@\""
expect sudo_warns 0 'the network is not blamed' "if said=\$( ($missing) 2>&1 ); then exit 1; fi; grep -q network <<<\"\$said\" || echo the network is not blamed"
stub id 'echo 1000'
stub apt-get 'exit 0'
expect no_sudo 3 'is not root and has no sudo: apt-get install some-package' "command() { [ \"\${2:-}\" != sudo ] && builtin command \"\$@\"; }; $missing"
expect no_apt 3 'there is no apt-get: some-package' "command() { [ \"\${2:-}\" != apt-get ] && builtin command \"\$@\"; }; $missing"
stub apt-get 'exit 0'
stub sudo 'exec "$@"'
expect installs 0 'installing from the distribution: some-package' "$missing"

stub sudo 'exec env -i "PATH=$PATH" "$@"'
stub id 'echo 1000'
stub apt-get '[ "${http_proxy:-}" = http://proxy.example:3128 ] || { echo "Temporary failure resolving mirror.example" >&2; exit 100; }'
expect sudo_keeps_the_proxy 0 'installing from the distribution: some-package' "export http_proxy=http://proxy.example:3128; $missing"
stub sudo 'exec env -i "PATH=$PATH" "$@"'
stub id 'echo 1000'
stub apt-get '[ "${http_proxy:-}" = http://proxy.example:3128 ] || { echo "Temporary failure resolving mirror.example" >&2; exit 100; }'
expect no_proxy_is_no_network 3 'there is no network' "unset http_proxy; $missing"

# CUDA from NVIDIA's wheels: the path is reached, and each failure has its cause.
stub python3 'case " $* " in *" pip "*) echo "Failed to establish a new connection: [Errno 101] Network is unreachable" >&2; exit 1;; *) echo Python 3.11;; esac'
expect wheels_no_network 3 'there is no network' "$wheels"
stub python3 'case " $* " in *" pip "*) echo "ERROR: No matching distribution found for nvidia-cuda-nvrtc==13.0.*" >&2; exit 1;; *) echo Python 3.11;; esac'
expect wheel_not_found 3 'NVIDIA has no such wheel for this machine' "$wheels"
stub python3 'case " $* " in *" pip "*) echo "OSError: [Errno 28] No space left on device" >&2; exit 1;; *) echo Python 3.11;; esac'
expect wheels_disk_full 3 'the disk is full' "$wheels"
stub python3 'exit 0'
expect wheels_elsewhere 3 'lie otherwise than expected' "$wheels"
stub python3 'mkdir -p .deps/cuda/nvidia/cu13/include; touch .deps/cuda/nvidia/cu13/include/nvrtc.h'
expect wheels_fetched 0 '.deps/cuda/nvidia/cu13' "$wheels"
expect toolkit_hidden 0 'root:' 'ASSAY_HIDE_CUDA=1; echo "root:$(find_toolkit)"'

# The build.
stub cmake 'echo "fatal error: error writing to /tmp/x.s: No space left on device"; exit 1'
expect build_disk_full 3 'the disk is full' 'ASSAY_CUDA_ROOT=/x; build release assay'
no_room='case " $* " in *avail*) printf "Avail\n812\n";; *) printf "Mounted on\n/somewhere\n";; esac'
stub cmake 'exit 1'
stub df "$no_room"
expect build_disk_full_unsaid 3 'the disk is full (/somewhere has 812 KiB left)' 'ASSAY_CUDA_ROOT=/x; build release assay'
stub cmake 'echo "fatal error: Permission denied"; exit 1'
stub df "$no_room"
expect build_other_while_full 3 'Permission denied' 'ASSAY_CUDA_ROOT=/x; build release assay'
stub cmake 'echo "g++: fatal error: Killed signal terminated program cc1plus"; exit 1'
expect build_no_memory 3 'memory ran out' 'ASSAY_CUDA_ROOT=/x; build release assay'
stub cmake 'echo "error: something else"; exit 1'
expect build_other 3 'the build failed; see build/release.log' 'ASSAY_CUDA_ROOT=/x; build release assay'
stub cmake 'exit 0'
expect build_works 0 'building (preset release' 'ASSAY_CUDA_ROOT=/x; build release assay'

[ $failures -eq 0 ] || { echo "$failures failed"; exit 1; }
