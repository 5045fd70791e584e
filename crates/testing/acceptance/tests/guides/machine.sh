#!/bin/bash
# The programs of a guide's machine: this file is linked under the name of each of them, first on the path.
# Each runs the real program on the private directory ($MACHINE), or checks its arguments where the real one
# would change this machine. machine.rs has the table.
set -eu
name=${0##*/}
real() { # the program of this name further down the path
    PATH=$OUTSIDE exec "$name" "$@"
}
fail() {
    echo "$name: $*" >&2
    exit 1
}
am_root() { [ "$(id -u)" = 0 ]; }
# As root, another user; the user pagewell of the package is nobody, with the groups that adduser noted.
as_user() {
    local user=$1 groups
    shift
    am_root || exec "$@"
    if [ "$user" = pagewell ]; then
        groups=$(paste -sd, "$MACHINE/state/groups")
        exec setpriv --reuid nobody --regid nogroup --groups "nogroup${groups:+,$groups}" "$@"
    fi
    exec setpriv --reuid "$user" --regid "$user" --init-groups "$@"
}
all_exist() {
    local path
    for path in "$@"; do
        [ -e "$path" ] || fail "there is no $path"
    done
}
case $name in
    sudo)
        if [ "$1" = -u ]; then
            user=$2
            shift 2
            as_user "$user" "$@"
        fi
        exec "$@"
        ;;
    apt | apt-get)
        action=$1
        shift
        [ "$action" = install ] || [ "$action" = remove ] || fail "what is $action?"
        for package in "$@"; do
            case $package in
                -y | --no-install-recommends) ;;
                -*) fail "what is $package?" ;;
                *) dpkg-query --show "$package" >/dev/null 2>&1 || apt-cache show "$package" >/dev/null ;;
            esac
        done
        ;;
    systemctl) # the test does it, and answers with the exit status
        request=$MACHINE/state/systemctl
        echo "$*" >"$request.new"
        mv "$request.new" "$request"
        until [ -e "$request.done" ]; do sleep 0.01; done
        read -r status <"$request.done"
        rm "$request.done"
        exit "$status"
        ;;
    adduser)
        [ $# = 2 ] && [ "$1" = pagewell ] && getent group "$2" >/dev/null || fail "what is $*?"
        echo "$2" >>"$MACHINE/state/groups"
        ;;
    id)
        [ "$*" = "-nG pagewell" ] || real "$@"
        echo pagewell "$(paste -sd' ' "$MACHINE/state/groups")"
        ;;
    pagewell)
        serve=()
        if [ "$1" = serve ]; then
            config=$(sed -n 's/.*--config \([^ ]*\).*/\1/p' <<<"$*")
            [ -n "$config" ] && grep -q '^admin = ' "$config" || serve=(--admin "$PAGEWELL_ADMIN")
            [[ "$*" == *--config* || "$*" == *--listen* ]] || serve+=(--listen "$VISITORS")
        fi
        # The configuration of this machine, and its certificate authority.
        [ "$*" != "init --verify" ] || set -- "$@" --output "$MACHINE/etc/pagewell/pagewell.toml" --ca "$MACHINE/state/ca.pem"
        exec "$PAGEWELL_BIN" "$@" "${serve[@]}"
        ;;
    nginx)
        real -e stderr -p "$MACHINE/state" -c "$MACHINE/etc/nginx/nginx.conf" "$@"
        ;;
    mariadb)
        real --no-defaults --socket="$MACHINE/run/mysqld/mysqld.sock" --user="$(PATH=$OUTSIDE id -un)" "$@"
        ;;
    curl) # the addresses stay as they are; connections go to the private ports
        case "$*" in
            *https://wordpress.org/latest.tar.gz*)
                exec tar -cz -C /usr/share --exclude=wordpress/wp-config.php --dereference wordpress
                ;;
        esac
        exec env PATH="$OUTSIDE" curl -sS --cacert "$MACHINE/state/ca.pem" $CONNECT "$@"
        ;;
    chown | chgrp)
        am_root && real "$@"
        shift
        [ "$1" != -R ] || shift
        all_exist "${@: -1}"
        ;;
    install)
        if am_root; then # the group of the package's user
            args=()
            for word in "$@"; do
                [ "$word" != pagewell ] || word=nogroup
                args+=("$word")
            done
            real "${args[@]}"
        fi
        args=()
        while [ $# -gt 0 ]; do
            case $1 in
                -o | -g) shift ;;
                *) args+=("$1") ;;
            esac
            shift
        done
        real "${args[@]}"
        ;;
    php)
        real -d auto_prepend_file="$MACHINE/state/prepend.php" -d sendmail_path=/bin/true "$@"
        ;;
    setfacl) # readable for all instead of for one user
        [ "$1" = -m ] && [ "$2" = u:pagewell:r ] || fail "what is $*?"
        shift 2
        chmod a+r "$@"
        ;;
    tar) # the owners in an archive are those of another machine
        real --no-same-owner "$@"
        ;;
    *) fail "is no program of a guide's machine" ;;
esac
