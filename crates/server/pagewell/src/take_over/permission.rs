//! Permission to take over: which process gets the listening sockets, and from which a new process accepts them.
//!
//! | the two processes have found each other by | the old process requires | the new process requires |
//! |---|---|---|
//! | a connection that the new one was started with ([`Contact::Inherited`]) | nothing more | nothing more |
//! | the name of the socket, both run as root, and the old one has no token | root | root |
//! | the name of the socket, and the old one has a token | a proof of the control interface's token | the same |
//! | the name of the socket, otherwise | it is refused | it is refused |
//!
//! Any process can connect to the name, or bind it while it is free. The user ID of any user but root is no
//! permission: PHP scripts may run as Pagewell's user, also of a Pagewell that root has started. All that a side
//! reads has one deadline. Neither side sends the token: each proves it for a number that the other
//! has drawn (HMAC, RFC 2104), and the two proofs differ by a word.

use super::GREETING;
use super::socket::{self, expect, hear, say};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use tokio::time::Instant;

/// The environment variable that tells a new process that its standard input is the connection to the old one.
pub const INHERITED: &str = "PAGEWELL_PREDECESSOR";

/// The old process's answer to a process that has permission.
const WELCOME: &str = "welcome";
/// Its answer to one that cannot have it.
const REFUSED: &str = "refused";
/// Its request for a proof, followed by its number.
const PROVE: &str = "prove ";

/// How two processes have found each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contact {
    /// The old process has started the new one, with this connection as its standard input.
    Inherited,
    /// By the name of the socket.
    ByName,
}

/// The old process's part: returns when the peer has permission, which must be until `by`.
///
/// # Errors
/// The peer has no permission, or has another version.
pub fn admit(
    stream: &UnixStream,
    contact: Contact,
    token: Option<&str>,
    by: Instant,
) -> io::Result<()> {
    if contact == Contact::Inherited {
        expect(stream, GREETING, by)?;
        return say(stream, WELCOME);
    }
    let peer = socket::check(stream, None)?;
    let Some(token) = token else {
        if peer.uid != 0 {
            // The peer may be gone.
            let _ = say(stream, REFUSED);
            return Err(denied(format!("the process {} has no secret to show", peer.pid)));
        }
        expect(stream, GREETING, by)?;
        return say(stream, WELCOME);
    };
    expect(stream, GREETING, by)?;
    let own = number()?;
    say(stream, &format!("{PROVE}{own}"))?;
    let said = hear(stream, by)?;
    let (theirs, proof) = said.split_once(' ').unwrap_or_default();
    if !is_proof(proof, token, "new", &own, theirs) {
        return Err(denied(format!("the process {} does not know the token", peer.pid)));
    }
    say(stream, &proved(token, "old", &own, theirs))
}

/// The new process's part: returns when the peer is the old process, and has given permission, which must be until
/// `by`. `user` is a second user ID that the old process may run as.
///
/// # Errors
/// No permission was given, or the peer is another program or has another version.
pub fn ask(
    stream: &UnixStream,
    contact: Contact,
    user: Option<u32>,
    token: Option<&str>,
    by: Instant,
) -> io::Result<()> {
    let needs_proof = match contact {
        Contact::Inherited => false,
        // Only root can have bound the name as root.
        Contact::ByName => socket::check(stream, user)?.uid != 0,
    };
    greet(stream, needs_proof, token, by)
}

fn greet(
    stream: &UnixStream,
    needs_proof: bool,
    token: Option<&str>,
    by: Instant,
) -> io::Result<()> {
    // The peer may have refused already, and closed the connection: its word can still be read.
    let sent = say(stream, GREETING);
    let said = hear(stream, by).map_err(|error| sent.err().unwrap_or(error))?;
    if said == WELCOME && !needs_proof {
        return Ok(());
    }
    let Some(theirs) = said.strip_prefix(PROVE) else {
        let way =
            "set admin_token_file in both configurations, or send SIGUSR2 to the running process";
        return Err(denied(format!("it says {said:?}, and needs a secret: {way}")));
    };
    let token = token.ok_or_else(|| denied("it has a token: set admin_token_file".into()))?;
    let own = number()?;
    say(stream, &format!("{own} {}", proved(token, "new", theirs, &own)))?;
    if is_proof(&hear(stream, by)?, token, "old", theirs, &own) {
        Ok(())
    } else {
        Err(denied("it does not know the token of the control interface".into()))
    }
}

/// A number that nobody can foresee.
fn number() -> io::Result<String> {
    let mut bytes = [0; 16];
    // Requests of up to 256 bytes are answered in full (getrandom(2)).
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(hexadecimal(&bytes))
}

fn mac(token: &str, side: &str, old: &str, new: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("any length is a key");
    mac.update(format!("{GREETING} {side} {old} {new}").as_bytes());
    mac
}

/// The proof of one side that it knows the token, for the numbers of both.
fn proved(token: &str, side: &str, old: &str, new: &str) -> String {
    hexadecimal(&mac(token, side, old, new).finalize().into_bytes())
}

fn is_proof(proof: &str, token: &str, side: &str, old: &str, new: &str) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let byte = |two: &[u8]| Some(digit(two[0])? << 4 | digit(*two.get(1)?)?);
    let bytes: Option<Vec<u8>> = proof.as_bytes().chunks(2).map(byte).collect();
    // Compared in constant time.
    bytes.is_some_and(|bytes| mac(token, side, old, new).verify_slice(&bytes).is_ok())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn denied(why: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a token of some length";

    #[test]
    fn a_proof_is_for_one_side_and_two_numbers() {
        let proof = proved(TOKEN, "new", "1", "2");
        assert!(is_proof(&proof, TOKEN, "new", "1", "2"));
        for (token, side, old, new) in [
            ("another token", "new", "1", "2"),
            (TOKEN, "old", "1", "2"),
            (TOKEN, "new", "2", "1"),
            (TOKEN, "new", "1", "3"),
        ] {
            assert!(!is_proof(&proof, token, side, old, new), "{token} {side} {old} {new}");
        }
        for wrong in ["", "0", "xx", &proof[..62], &format!("{proof}00")] {
            assert!(!is_proof(wrong, TOKEN, "new", "1", "2"), "{wrong}");
        }
    }

    fn soon() -> Instant {
        Instant::now() + std::time::Duration::from_secs(60)
    }

    #[test]
    fn a_process_that_was_started_needs_no_token() {
        let (old, new) = UnixStream::pair().unwrap();
        let admitted =
            std::thread::spawn(move || admit(&old, Contact::Inherited, Some(TOKEN), soon()));
        ask(&new, Contact::Inherited, None, None, soon()).unwrap();
        admitted.join().unwrap().unwrap();
    }

    #[test]
    fn by_name_both_sides_prove_the_token_whatever_their_user() {
        for (theirs, own, is_proven) in [
            (TOKEN, Some(TOKEN), true),
            (TOKEN, Some("another token"), false),
            (TOKEN, None, false),
        ] {
            let (old, new) = UnixStream::pair().unwrap();
            let admitted =
                std::thread::spawn(move || admit(&old, Contact::ByName, Some(theirs), soon()));
            let asked = ask(&new, Contact::ByName, None, own, soon());
            drop(new);
            let admitted = admitted.join().unwrap();
            assert_eq!((asked.is_ok(), admitted.is_ok()), (is_proven, is_proven), "{own:?}");
        }
    }

    #[test]
    fn the_word_of_a_process_that_is_not_root_is_no_proof() {
        for token in [None, Some(TOKEN)] {
            for word in
                [WELCOME.to_owned(), format!("{PROVE}1\n{}", proved("guess", "old", "1", "2"))]
            {
                let (old, new) = UnixStream::pair().unwrap();
                say(&old, &word).unwrap();
                assert!(greet(&new, true, token, soon()).is_err(), "{word:?}");
            }
        }
    }
}
