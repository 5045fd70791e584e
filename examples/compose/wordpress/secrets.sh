#!/bin/sh
# Writes random passwords to the directory `secrets`, once; what is there is kept.
#
# With Docker as root, because Pagewell reads no secret that belongs to another user. With rootless Podman as the user
# who runs it, who is root in the containers. With Docker Desktop on macOS also as the user, because it runs as the
# user; not tried.
set -eu
cd "$(dirname "$0")"
# The containers get single files, and read them as users of their own.
umask 022
mkdir -p secrets
chmod 700 secrets
for name in control_token follower_password root_password wordpress_password; do
    [ -s "secrets/$name" ] || head -c 24 /dev/urandom | base64 >"secrets/$name"
done
