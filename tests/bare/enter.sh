#!/usr/bin/env bash
# Turns a root file system into a machine, and runs a command there as an ordinary user:
#
#     unshare --mount --pid --fork --kill-child --ipc --uts enter.sh ROOT USER FOLDER COMMAND…
#
# What it mounts goes with the namespace.
set -euo pipefail
root=$1 user=$2 folder=$3
shift 3

mount --make-rprivate /
mount --bind "$root" "$root" # pivot_root wants a mount
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root"/dev/{pts,shm}
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
for number in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${number%%:*}" "$root/dev/${number##*:}"
done
ln -s pts/ptmx "$root/dev/ptmx"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"

hostname bare
# Not chroot: who is in one may make no user namespaces, and guests are confined by them.
cd "$root"
pivot_root . mnt
umount --lazy mnt
# Not exec: the first process collects what others leave behind, which bash does and runuser does not.
runuser --user "$user" -- /usr/bin/env --ignore-environment --chdir="$folder" \
    LC_ALL=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin \
    "HOME=/home/$user" "USER=$user" "LOGNAME=$user" "$@"
