//! fastcgi
