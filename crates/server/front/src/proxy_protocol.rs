//! Parses the PROXY protocol, versions 1 and 2 (HAProxy's specification of 2020-03-05). A load balancer
//! names the client in this header at the start of a connection. [`crate::listen`] decides which peers
//! are trusted, and enforces the time limit.
//!
//! [`read`] returns a lower bound for the missing bytes, and never requests more than the header has.
//! So the data after it (HTTP, a TLS handshake) is not consumed. Bounds: 107 bytes in version 1
//! (section 2.1), [`V2_BYTES_MAX`] in version 2. Additional fields (TLV, section 2.2) are skipped,
//! including their checksum. Only stream connections are supported; headers for datagrams are
//! malformed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Maximum length of a version 1 header in bytes, including the line break (section 2.1).
const V1_BYTES_MAX: usize = 107;
/// Minimum length of a version 1 header in bytes: `PROXY UNKNOWN` and the line break.
const V1_BYTES_MIN: usize = 15;
const V1_BEGIN: &[u8] = b"PROXY ";
/// The beginning of a version 2 header (section 2.2).
const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the fixed part in bytes: signature, version and command, family, length.
const V2_FIXED: usize = 16;
/// Maximum length of a version 2 header in bytes: addresses, and fields such as the name in a client's
/// certificate.
pub const V2_BYTES_MAX: usize = V2_FIXED + 4_096;

/// The client that a header names, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyClient {
    /// The connection belongs to this client.
    Client {
        /// The client's address.
        from: SocketAddr,
        /// The address that the client connected to.
        to: SocketAddr,
    },
    /// The proxy's own connection, such as a health check (LOCAL, section 2.2).
    Own,
    /// The proxy does not know the client's address: UNKNOWN, UNSPEC, a Unix socket.
    Unknown,
}

/// The result of parsing the bytes received so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The header needs at least this many more bytes.
    More(usize),
    /// The header is complete; contains its content.
    Done(ProxyClient),
}

/// Why a connection is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyRefusal {
    /// The peer is not a trusted proxy.
    Untrusted,
    /// There is no PROXY protocol header.
    Missing,
    /// The header has invalid syntax.
    Malformed,
    /// The header exceeds the maximum length.
    TooLong,
    /// The header did not arrive in time, or the connection ended before it was complete.
    Incomplete,
}

impl ProxyRefusal {
    /// The reason's name in the log and in the manual.
    pub fn as_str(self) -> &'static str {
        match self {
            ProxyRefusal::Untrusted => "proxy-untrusted",
            ProxyRefusal::Missing => "proxy-missing",
            ProxyRefusal::Malformed => "proxy-malformed",
            ProxyRefusal::TooLong => "proxy-too-long",
            ProxyRefusal::Incomplete => "proxy-incomplete",
        }
    }
}

/// Parses the bytes of a header received so far.
///
/// # Errors
/// The bytes are not a valid header.
pub fn read(bytes: &[u8]) -> Result<Step, ProxyRefusal> {
    let begins = |with: &[u8]| {
        let common = bytes.len().min(with.len());
        bytes[..common] == with[..common]
    };
    if bytes.is_empty() {
        // The minimum length of version 2 is larger.
        Ok(Step::More(V1_BYTES_MIN))
    } else if begins(V2_SIGNATURE) {
        read_v2(bytes)
    } else if begins(V1_BEGIN) {
        read_v1(bytes)
    } else {
        Err(ProxyRefusal::Missing)
    }
}

/// Parses version 1: `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443` and CR LF, with single spaces.
fn read_v1(bytes: &[u8]) -> Result<Step, ProxyRefusal> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        return match bytes.len() {
            V1_BYTES_MAX.. => Err(ProxyRefusal::TooLong),
            V1_BYTES_MIN.. if bytes.ends_with(b"\r") => Ok(Step::More(1)),
            // Near the maximum length, only one byte may be missing.
            V1_BYTES_MIN.. => Ok(Step::More((V1_BYTES_MAX - bytes.len()).min(2))),
            short => Ok(Step::More(V1_BYTES_MIN - short)),
        };
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or(ProxyRefusal::Malformed)?;
    let line = str::from_utf8(line).map_err(|_| ProxyRefusal::Malformed)?;
    let mut words = line.split(' ').skip(1);
    let family = words.next().ok_or(ProxyRefusal::Malformed)?;
    if family == "UNKNOWN" {
        // The rest of the line is to be ignored (section 2.1).
        return Ok(Step::Done(ProxyClient::Unknown));
    }
    let mut next = || words.next().ok_or(ProxyRefusal::Malformed);
    let (from, to, from_port, to_port) = (next()?, next()?, next()?, next()?);
    if words.next().is_some() {
        return Err(ProxyRefusal::Malformed);
    }
    let from = SocketAddr::new(address(family, from)?, port(from_port)?);
    let to = SocketAddr::new(address(family, to)?, port(to_port)?);
    Ok(Step::Done(ProxyClient::Client { from, to }))
}

fn address(family: &str, text: &str) -> Result<IpAddr, ProxyRefusal> {
    let address = match family {
        "TCP4" => text.parse().map(IpAddr::V4),
        "TCP6" => text.parse().map(IpAddr::V6),
        _ => return Err(ProxyRefusal::Malformed),
    };
    address.map_err(|_| ProxyRefusal::Malformed)
}

fn port(text: &str) -> Result<u16, ProxyRefusal> {
    let plain =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten().ok_or(ProxyRefusal::Malformed)
}

fn read_v2(bytes: &[u8]) -> Result<Step, ProxyRefusal> {
    let Some(fixed) = bytes.first_chunk::<V2_FIXED>() else {
        return Ok(Step::More(V2_FIXED - bytes.len()));
    };
    let [.., command, family, high, low] = *fixed;
    let total = V2_FIXED + usize::from(u16::from_be_bytes([high, low]));
    if total > V2_BYTES_MAX {
        return Err(ProxyRefusal::TooLong);
    }
    let own = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyRefusal::Malformed),
    };
    if bytes.len() < total {
        return Ok(Step::More(total - bytes.len()));
    }
    let rest = &bytes[V2_FIXED..total];
    Ok(Step::Done(match family {
        // For LOCAL, the addresses are to be ignored.
        _ if own => ProxyClient::Own,
        0x11 => v2_client::<4, Ipv4Addr>(rest)?,
        0x21 => v2_client::<16, Ipv6Addr>(rest)?,
        0x00 | 0x31 => ProxyClient::Unknown,
        _ => return Err(ProxyRefusal::Malformed),
    }))
}

/// Parses two addresses of `N` bytes and two ports; further fields are ignored.
fn v2_client<const N: usize, A>(rest: &[u8]) -> Result<ProxyClient, ProxyRefusal>
where
    A: From<[u8; N]> + Into<IpAddr>,
{
    let (from, rest) = rest.split_first_chunk::<N>().ok_or(ProxyRefusal::Malformed)?;
    let (to, rest) = rest.split_first_chunk::<N>().ok_or(ProxyRefusal::Malformed)?;
    let [a, b, c, d] = *rest.first_chunk().ok_or(ProxyRefusal::Malformed)?;
    Ok(ProxyClient::Client {
        from: SocketAddr::new(A::from(*from).into(), u16::from_be_bytes([a, b])),
        to: SocketAddr::new(A::from(*to).into(), u16::from_be_bytes([c, d])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(from: &str, to: &str) -> Result<Step, ProxyRefusal> {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        Ok(Step::Done(ProxyClient::Client { from, to }))
    }

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [V2_SIGNATURE, &[command, family], &length, rest].concat()
    }

    const FOUR: &[u8] = &[192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 0x04, 0x01, 0xbb];

    #[test]
    fn version_1() {
        let four = "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n";
        assert_eq!(read(four.as_bytes()), client("192.0.2.1:56324", "198.51.100.1:443"));
        let six = "PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
        assert_eq!(read(six.as_bytes()), client("[2001:db8::1]:1", "[::1]:65535"));
        for unknown in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 nonsense\r\n"] {
            assert_eq!(read(unknown.as_bytes()), Ok(Step::Done(ProxyClient::Unknown)));
        }
        for wrong in [
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 \r\n",
            "PROXY TCP4  192.0.2.1 198.51.100.1 56324 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 65536\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 01 443\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP6 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY \r\n",
            "PROXY \u{e9}\r\n",
        ] {
            assert_eq!(read(wrong.as_bytes()), Err(ProxyRefusal::Malformed), "{wrong:?}");
        }
        let long = format!("PROXY UNKNOWN {}", "x".repeat(93));
        assert_eq!(long.len(), V1_BYTES_MAX);
        assert_eq!(read(long.as_bytes()), Err(ProxyRefusal::TooLong));
        assert_eq!(read(b"GET / HTTP/1.1\r\n"), Err(ProxyRefusal::Missing));
    }

    #[test]
    fn version_2() {
        let right = client("192.0.2.1:56324", "198.51.100.1:443");
        assert_eq!(read(&v2(0x21, 0x11, FOUR)), right);
        let with_fields = [FOUR, &[0x03, 0, 4, 1, 2, 3, 4]].concat();
        assert_eq!(read(&v2(0x21, 0x11, &with_fields)), right);
        let mut six = [0; 36];
        (six[15], six[31], six[33], six[35]) = (1, 2, 3, 4);
        assert_eq!(read(&v2(0x21, 0x21, &six)), client("[::1]:3", "[::2]:4"));
        assert_eq!(read(&v2(0x20, 0x11, FOUR)), Ok(Step::Done(ProxyClient::Own)));
        assert_eq!(read(&v2(0x20, 0x00, &[])), Ok(Step::Done(ProxyClient::Own)));
        assert_eq!(read(&v2(0x21, 0x00, &[])), Ok(Step::Done(ProxyClient::Unknown)));
        assert_eq!(read(&v2(0x21, 0x31, &[0; 216])), Ok(Step::Done(ProxyClient::Unknown)));
        for (command, family, rest) in [
            (0x11, 0x11, FOUR),
            (0x22, 0x11, FOUR),
            (0x21, 0x12, FOUR),
            (0x21, 0x41, FOUR),
            (0x21, 0x11, &FOUR[..11]),
            (0x21, 0x21, FOUR),
        ] {
            assert_eq!(read(&v2(command, family, rest)), Err(ProxyRefusal::Malformed));
        }
        let long = v2(0x21, 0x11, &[0; V2_BYTES_MAX]);
        assert_eq!(read(&long), Err(ProxyRefusal::TooLong));
        assert_eq!(read(b"\r\n\r\n\0\r\nQUIT\r"), Err(ProxyRefusal::Missing));
    }

    /// A reader that reads exactly as many bytes as reported missing stops exactly at the header's end.
    #[test]
    fn no_byte_beyond_the_header_is_requested() {
        let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(V1_BYTES_MAX - 16));
        for header in [
            b"PROXY UNKNOWN\r\n".to_vec(),
            b"PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n".to_vec(),
            longest.into_bytes(),
            v2(0x20, 0, &[]),
            v2(0x21, 0x11, FOUR),
        ] {
            let mut have = 0;
            while let Step::More(missing) = read(&header[..have]).unwrap() {
                assert!(missing > 0);
                have += missing;
                assert!(have <= header.len(), "{header:?}");
            }
            assert_eq!(have, header.len());
        }
    }
}
