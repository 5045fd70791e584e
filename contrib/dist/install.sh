#!/bin/sh
# Installs Pagewell from this directory on a Linux system with glibc 2.31 or newer, or musl if its name says so. As root:
#
#   ./install.sh                  below /usr/local, with a unit for systemd if this system has it
#   ./install.sh --prefix DIR     below another directory
#   ./install.sh --uninstall      stops it, and removes what it has installed (with the same --prefix);
#                                 configuration, snapshots and logs stay
#
# DESTDIR is put before every path, for packages of other systems: then no user is created and nothing is reloaded.
# An existing configuration is never changed, and no service is started, restarted or stopped, but by --uninstall.
# Exit status: 0 done · 1 a file cannot be written, or a signal has ended it: the message says whether files
# have changed, and the user and new directories stay · 2 wrong usage · 3 not root · 4 a package is installed ·
# 5 the user cannot be created
set -eu
# Also where root's own files are hidden: the service's user runs the program.
umask 022
cd "$(dirname "$0")"

prefix=/usr/local action=install root=${DESTDIR:-}
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?} && shift 2 ;;
        --uninstall) action=uninstall && shift ;;
        *) echo "usage: install.sh [--prefix DIR] [--uninstall]" >&2 && exit 2 ;;
    esac
done
case $prefix in
    *[!A-Za-z0-9/._+-]*) echo "install.sh: $prefix has other characters than letters, digits and /._+-" >&2 && exit 2 ;;
    /*) ;;
    *) echo "install.sh: $prefix is no absolute path" >&2 && exit 2 ;;
esac
[ -n "$root" ] || [ "$(id -u)" = 0 ] || { echo "install.sh: this needs root" >&2 && exit 3; }
# A unit in /etc would hide that of the package, and --uninstall would stop its service.
[ ! -e "$root/usr/lib/systemd/system/pagewell.service" ] ||
    { echo "install.sh: a package of Pagewell is installed here: upgrade that, or remove it first: apt remove pagewell" >&2 && exit 4; }

units=/etc/systemd/system
config=/etc/pagewell/pagewell.toml
# Each file with its place and mode.
files() {
    cat <<FILES
bin/pagewell $prefix/bin/pagewell 755
man/pagewell.1 $prefix/share/man/man1/pagewell.1 644
man/pagewell.toml.5 $prefix/share/man/man5/pagewell.toml.5 644
completions/pagewell.bash $prefix/share/bash-completion/completions/pagewell 644
completions/_pagewell $prefix/share/zsh/site-functions/_pagewell 644
completions/pagewell.fish $prefix/share/fish/vendor_completions.d/pagewell.fish 644
FILES
}

has_systemd() { [ -n "$root" ] || [ -d /run/systemd/system ]; }

# ---- the user --------------------------------------------------------------------------------

has() { command -v "$1" >/dev/null; }
is_known() { getent "$1" pagewell >/dev/null 2>&1 || grep -q '^pagewell:' "/etc/$1"; }
# Alpine has the commands of busybox.
add_group() { if has groupadd; then groupadd --system pagewell; else addgroup -S pagewell; fi; }
add_user() {
    if has useradd; then
        useradd --system --gid pagewell --home-dir /var/lib/pagewell --no-create-home --shell /usr/sbin/nologin pagewell
    else
        adduser -S -D -H -h /var/lib/pagewell -s /sbin/nologin -G pagewell pagewell
    fi
}
create_user() {
    { is_known group || add_group; } && { is_known passwd || add_user; } && return
    echo "install.sh: the group and the user pagewell cannot be created: create both, and run this again" >&2
    exit 5
}

print_next_steps() {
    echo "Installed in $prefix. Next:"
    printf '  %-48s %s\n' "edit $config" "document root, php-fpm's socket, ports"
    join='usermod --append --groups GROUP pagewell'
    has usermod || join='addgroup pagewell GROUP'
    printf '  %-48s %s\n' "$join" "the group of php-fpm's socket (www-data, apache, nginx …)"
    echo "  pagewell check --config $config"
    if has_systemd; then
        echo "  systemctl enable --now pagewell"
    else
        echo "  without systemd: write user = \"pagewell\" at the top of that file, and let your supervisor run as root:"
        echo "    $prefix/bin/pagewell serve --config $config"
    fi
}

# ---- the files -------------------------------------------------------------------------------

if [ $action = uninstall ]; then
    if [ -z "$root" ] && has_systemd; then systemctl disable --now pagewell.service pagewell.socket 2>/dev/null || true; fi
    files | while read -r _ to _; do rm -f "$root$to"; done
    rm -rf "$root$prefix/share/doc/pagewell"
    rm -f "$root$units/pagewell.service" "$root$units/pagewell.socket"
    if [ -z "$root" ] && has_systemd; then systemctl daemon-reload; fi
    # Not the file of auto_prepend_file: a pool of php-fpm that names it would answer no request.
    echo "These stay: /etc/pagewell /var/lib/pagewell /var/log/pagewell /var/lib/pagewell-php, and the user pagewell."
    exit 0
fi

[ -n "$root" ] || create_user

# Nothing takes its place before all is written, so that a full disk changes no file.
written='' state='no file is changed'
remedy="Free space (df -h $root$prefix), or name a writable directory by --prefix; then run this again"
undo() {
    for path in $written; do rm -rf "$root$path.new" || true; done
    echo "install.sh: $state. $remedy" >&2
    exit 1
}
trap undo EXIT
trap 'remedy="Run this again" && exit 1' HUP INT TERM

# write FROM TO MODE: beside its place.
write() {
    mkdir -p "$root${2%/*}"
    written="$written $2"
    install -m "$3" "$1" "$root$2.new"
}

# shellcheck disable=SC2046
set -- $(files)
while [ $# -gt 0 ]; do
    write "$1" "$2" "$3"
    shift 3
done
# The licences, also those of the libraries in the program, and the manual as HTML.
doc=$prefix/share/doc/pagewell
written="$written $doc"
rm -rf "$root$doc.new"
mkdir -p "$root$doc.new"
cp LICENSE-MIT LICENSE-APACHE LICENSES-OF-LIBRARIES CHANGELOG.md "$root$doc.new/"
[ ! -d doc ] || cp -R doc "$root$doc.new/html"
if [ ! -e "$root$config" ] && [ ! -L "$root$config" ]; then write etc/pagewell.toml $config 644; fi
# For automatic dependencies (docs/guide/automatic.md). It stays: PHP answers no request of a pool that misses it.
write php/prepend.php /var/lib/pagewell-php/prepend.php 644
if has_systemd; then
    for unit in pagewell.service pagewell.socket; do
        write "systemd/$unit" "$units/$unit" 644
        sed "s|/usr/bin/pagewell|$prefix/bin/pagewell|" "systemd/$unit" >"$root$units/$unit.new"
    done
fi
if [ -z "$root" ]; then
    for dir in /var/lib/pagewell /var/log/pagewell; do
        [ -d $dir ] || install -d -o pagewell -g pagewell -m 750 $dir
    done
fi

state='only some files are of this version'
for path in $written; do
    # The documents are a directory, which does not replace another.
    [ "$path" != "$doc" ] || rm -rf "$root$doc"
    mv -f "$root$path.new" "$root$path"
done
state='every file is of this version, but systemd has not read the units' remedy='Run systemctl daemon-reload'
[ -n "$root" ] || ! has_systemd || systemctl daemon-reload
trap - EXIT HUP INT TERM

if [ -z "$root" ] && has_systemd && systemctl --quiet is-active pagewell.service; then
    cat <<TEXT
Installed in $prefix. The service still runs the version before. Next:
  pagewell check --config /etc/pagewell/pagewell.toml
  systemctl kill --signal=USR2 --kill-whom=main pagewell       a restart without refused connections
TEXT
    exit 0
fi
print_next_steps
