//! `UUID`, `INET6` and `INET4` of MariaDB: converts the bytes of a row to text.
//!
//! A UUID of version 1 to 5 is stored with its time last, so that it sorts by time. Others are stored unchanged
//! (MariaDB 10.10.6, 10.11.5 and later; earlier versions reorder all of them). Source:
//! `plugin/type_uuid/sql_type_uuid.h`. `INET6` is written like `inet_ntop`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The UUID in text order, from the bytes of a record.
pub(super) fn uuid_of_record(record: [u8; 16]) -> [u8; 16] {
    // Only a reordered UUID has the variant bit at this place and a version above 0.
    let is_turned = record[6] & 0x80 != 0 && (1..0x80).contains(&record[8]);
    if !is_turned {
        return record;
    }
    let mut uuid = [0; 16];
    uuid[..4].copy_from_slice(&record[12..]);
    uuid[4..6].copy_from_slice(&record[10..12]);
    uuid[6..8].copy_from_slice(&record[8..10]);
    uuid[8..10].copy_from_slice(&record[6..8]);
    uuid[10..].copy_from_slice(&record[..6]);
    uuid
}

/// The text of a UUID, in lower-case digits.
#[must_use]
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex = super::hex(uuid);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// The text of an IPv6 address.
#[must_use]
pub fn inet6_text(bytes: &[u8; 16]) -> String {
    let address = Ipv6Addr::from(*bytes);
    // Like `inet_ntop`, IPv4-compatible addresses are written with dots; `::` and `::1` are not.
    let is_compatible = bytes[..12] == [0; 12] && bytes[12..14] != [0, 0];
    if is_compatible {
        return format!("::{}.{}.{}.{}", bytes[12], bytes[13], bytes[14], bytes[15]);
    }
    address.to_string()
}

/// The text of an IPv4 address.
#[must_use]
pub fn inet4_text(bytes: &[u8; 4]) -> String {
    Ipv4Addr::from(*bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turned_uuid_is_turned_back() {
        let record = [
            0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8, 0x80, 0xb4, 0x11, 0xd1, 0x9d, 0xad, 0x6b, 0xa7,
            0xb8, 0x10,
        ];
        assert_eq!(uuid_text(&uuid_of_record(record)), "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        assert_eq!(uuid_of_record([0; 16]), [0; 16]);
        assert_eq!(uuid_of_record([0xff; 16]), [0xff; 16]);
    }

    #[test]
    fn addresses() {
        let mut bytes = [0; 16];
        assert_eq!(inet6_text(&bytes), "::");
        bytes[15] = 1;
        assert_eq!(inet6_text(&bytes), "::1");
        bytes[12..].copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(inet6_text(&bytes), "::1.2.3.4");
        bytes[10..12].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(inet6_text(&bytes), "::ffff:1.2.3.4");
        assert_eq!(inet4_text(&[10, 0, 0, 1]), "10.0.0.1");
    }
}
