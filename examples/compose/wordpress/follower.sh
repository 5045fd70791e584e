#!/bin/sh
# Run once by MariaDB's image: the account with which Pagewell follows the changes, and looks up rows.
set -eu
password=$(cat /run/secrets/follower_password)
mariadb --user=root --password="$(cat /run/secrets/root_password)" <<SQL
CREATE USER pagewell@'%' IDENTIFIED BY '$password';
GRANT REPLICATION SLAVE ON *.* TO pagewell@'%';
GRANT SELECT ON wordpress.* TO pagewell@'%';
SQL
