#!/usr/bin/env bash
# Tries the steps of the Dockerfile without Docker. Executes the lines of the Dockerfile for each stage of the CPU
# image, in a fresh root of Debian 12 made by debootstrap, and then runs the program as its user would. Needs root,
# debootstrap and a Debian mirror.
#
#   tools/check_fresh_root.sh FOLDER [MIRROR]     FOLDER must not exist; it is kept
#
# Knows the instructions that the Dockerfile uses: FROM, ARG, COPY, RUN, WORKDIR, USER, ENV, ENTRYPOINT, CMD.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
if [[ $# -lt 1 || $# -gt 2 ]]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]##*/}" 2>/dev/null || true
  echo "usage: tools/check_fresh_root.sh FOLDER [MIRROR]" >&2
  exit 2
fi
if [[ $(id -u) -ne 0 ]]; then
  echo "check_fresh_root.sh: making and entering a root file system needs root" >&2
  exit 1
fi
readonly work=$1 source=$PWD
mirror=${2:-}
if [[ -z $mirror ]]; then  # the mirror of this machine
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null |
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) bookworm .*/\2/p' | sed -n 1p || true)
fi
if [[ -z $mirror ]]; then
  echo "check_fresh_root.sh: apt's configuration names no mirror of Debian 12; expected one as the second argument" >&2
  exit 2
fi
mkdir "$work"
mounted=()
cleanup() { for at in "${mounted[@]}"; do umount -l "$at" || true; done; }
trap cleanup EXIT

declare -A root_of arguments
stage='' user=root folder=/ entry=()
started=$SECONDS

enter() { # COMMAND: runs it as $user in $folder of the stage
  local home
  home=$(chroot "${root_of[$stage]}" getent passwd "$user" | cut -d : -f 6)
  chroot "${root_of[$stage]}" /usr/bin/env -i HOME="$home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --reuid "$user" --regid "$(chroot "${root_of[$stage]}" id -g "$user")" --clear-groups \
    /bin/sh -c "cd '$folder' && $1" </dev/null
}

from() { # IMAGE [AS NAME]
  local image=$1 name=${3:-final} root
  root=$work/$name
  if [[ -n ${root_of[$image]:-} ]]; then
    cp -ax "${root_of[$image]}" "$root"
  elif [[ $image == debian:12* ]]; then
    [[ -d $work/.base ]] || debootstrap --variant=minbase bookworm "$work/.base" "$mirror" >"$work/debootstrap.log"
    cp -a "$work/.base" "$root"
  else
    return 1
  fi
  mkdir -p "$root/proc"
  mount -t proc proc "$root/proc"
  mounted+=("$root/proc")
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  root_of[$name]=$root stage=$name user=root folder=/
}

copy() { # [--from=STAGE] SOURCE TARGET
  local origin=$source target=${!#}
  if [[ $1 == --from=* ]]; then
    origin=${root_of[${1#--from=}]}
    shift
  fi
  [[ $target == /* ]] || target=$folder/$target
  target=${root_of[$stage]}$target
  if [[ $1 == . ]]; then # all files that git does not ignore
    mkdir -p "$target"
    git -C "$source" ls-files -z --cached --others --exclude-standard | tar -C "$source" --null -T - -cf - | tar -C "$target" -xf -
  elif [[ -d $origin$1 ]]; then
    mkdir -p "$target"
    cp -a "$origin$1/." "$target/"
  else
    mkdir -p "$target"
    # $1 may be a pattern.
    # shellcheck disable=SC2086
    cp -a "$origin"$1 "$target/"
  fi
}

skip=no
while IFS= read -r line; do
  word=${line%% *} rest=${line#* }
  for name in "${!arguments[@]}"; do rest=${rest//"\${$name}"/"${arguments[$name]}"}; done
  [[ $word == FROM ]] && skip=no
  [[ $skip == yes ]] && continue
  at=$((SECONDS - started))
  case $word in
    ARG) arguments[${rest%%=*}]=${rest#*=} ;;
    FROM)
      printf '%5d s  %s\n' "$at" "$line"
      # Stages of other images than Debian's, which the GPU variant uses, are left out.
      # shellcheck disable=SC2086
      from $rest || { skip=yes; echo "         left out"; }
      ;;
    WORKDIR)
      folder=$rest
      mkdir -p "${root_of[$stage]}$rest"
      ;;
    USER) user=$rest ;;
    COPY)
      printf '%5d s  %s\n' "$at" "$line"
      read -r -a args <<<"$rest"
      copy "${args[@]}"
      ;;
    RUN)
      printf '%5d s  %s\n' "$at" "$line"
      enter "$rest" >"$work/log" 2>&1 || {
        tail -n 40 "$work/log" >&2
        exit 1
      }
      ;;
    ENTRYPOINT) read -r -a entry <<<"$(tr -d '[]",' <<<"$rest")" ;;
    CMD | ENV) ;;
    *)
      echo "check_fresh_root.sh: unknown instruction: $line" >&2
      exit 1
      ;;
  esac
done < <(sed -e '/^#/d' -e '/^$/d' Dockerfile | sed -e ':more' -e '/\\$/{N;s/\\\n *//;b more}')

printf '%5d s  the image is %s\n' $((SECONDS - started)) "$(du -xsh --exclude=proc "${root_of[final]}" | cut -f 1)"
for arguments in --version 'example scenario -o scenario.json' 'simulate scenario.json' \
  'allreduce --catalog aws --instance p3.16xlarge --scheme ring --bytes 1MiB --fidelity message' 'train --steps 20 --samples samples.png' doctor; do
  echo "\$ ${entry[*]} $arguments"
  enter "${entry[*]} $arguments"
done
printf '%5d s  done\n' $((SECONDS - started))
