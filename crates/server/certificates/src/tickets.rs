//! Session tickets (RFC 5077, RFC 8446 section 4.6.1): a client that comes back shows one, and its handshake needs
//! no signature. Their keys belong to this process, until a cluster shares keys of its own ([`TicketKey`]).
//!
//! Without shared keys, a client that comes back to another node makes a whole handshake; nothing else is lost.
//! Invariant: keys that are replaced and no longer given are forgotten, so that a ticket of a stolen recording
//! cannot be opened later.
//!
//! Not here: how nodes share keys, and when they are replaced (`acme`).

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::crypto::ring as provider;
use rustls::server::ProducesTickets;
use std::sync::{Arc, PoisonError, RwLock};

/// The length of the name of a key, which begins each of its tickets.
const NAME_LEN: usize = 16;

/// The longest ticket that is opened, in bytes; ours have less than 400.
const MAX_TICKET: usize = 2048;

/// The bytes of a key for session tickets, as nodes share them: 16 bytes of a name, and 32 of the key.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketKey(pub [u8; 48]);

impl TicketKey {
    /// Makes a key from the system's random numbers.
    ///
    /// # Errors
    /// The system has none: a sentence for the operator.
    pub fn random() -> Result<TicketKey, String> {
        let mut bytes = [0; 48];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| "tls: the system gives no random numbers".to_owned())?;
        Ok(TicketKey(bytes))
    }
}

/// The keys of session tickets: those that are shared, else this process's own.
pub struct Tickets {
    /// Keys of this process only. Replaced every 6 hours; the one before is accepted for 6 hours more.
    own: Arc<dyn ProducesTickets>,
    /// The keys that nodes share, the newest first. The lock guards only the pointer.
    shared: RwLock<Arc<[SharedKey]>>,
}

struct SharedKey {
    name: [u8; NAME_LEN],
    key: LessSafeKey,
}

impl Tickets {
    /// Creates tickets with keys of this process only.
    ///
    /// # Errors
    /// The system has no random numbers: a sentence for the operator.
    pub fn new() -> Result<Tickets, String> {
        let own = provider::Ticketer::new().map_err(|error| format!("tls: {error}"))?;
        Ok(Tickets { own, shared: RwLock::new(Arc::new([])) })
    }

    /// Uses these keys from now on, and no earlier ones: new tickets get the first, all are accepted.
    pub fn share(&self, keys: &[TicketKey]) {
        let keys: Arc<[SharedKey]> = keys.iter().filter_map(SharedKey::new).collect();
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    fn shared(&self) -> Arc<[SharedKey]> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tickets").field("shared", &self.shared().len()).finish_non_exhaustive()
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.own.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        match self.shared().first() {
            Some(key) => key.seal(plain),
            None => self.own.encrypt(plain),
        }
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let shared = self.shared();
        match shared.iter().find(|key| ticket.starts_with(&key.name)) {
            Some(key) => key.open(ticket),
            // Also a ticket of the time before keys were shared.
            None => self.own.decrypt(ticket),
        }
    }
}

impl SharedKey {
    fn new(TicketKey(bytes): &TicketKey) -> Option<SharedKey> {
        let (name, key) = bytes.split_first_chunk::<NAME_LEN>()?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, key).ok()?;
        Some(SharedKey { name: *name, key: LessSafeKey::new(key) })
    }

    /// Name, nonce, and the sealed text with its tag. The nonce is random: of the tickets of 6 hours on all nodes,
    /// far fewer than the 2^32 for which that is safe.
    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut ticket = [&self.name[..], &nonce].concat();
        let mut sealed = plain.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(self.name), &mut sealed).ok()?;
        ticket.append(&mut sealed);
        Some(ticket)
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > MAX_TICKET {
            return None;
        }
        let (nonce, sealed) = ticket.get(NAME_LEN..)?.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut plain = sealed.to_vec();
        let length = self.key.open_in_place(nonce, Aad::from(self.name), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(keys: &[TicketKey]) -> Tickets {
        let tickets = Tickets::new().expect("random numbers");
        tickets.share(keys);
        tickets
    }

    #[test]
    fn nodes_with_the_same_keys_open_each_others_tickets() {
        let [old, new] = [(); 2].map(|()| TicketKey::random().expect("random numbers"));
        let (before, after) = (tickets(std::slice::from_ref(&old)), tickets(&[new.clone(), old]));
        let ticket = before.encrypt(b"a session").expect("sealed");
        assert_eq!(after.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
        // A key that is no longer given is forgotten.
        let later = tickets(&[new]);
        assert_eq!(later.decrypt(&ticket), None);
        let ticket = after.encrypt(b"another").expect("sealed");
        assert_eq!(later.decrypt(&ticket).as_deref(), Some(&b"another"[..]));
        assert_eq!(before.decrypt(&ticket), None);
    }

    #[test]
    fn a_ticket_of_the_time_before_keys_were_shared_is_opened() {
        let tickets = tickets(&[]);
        let ticket = tickets.encrypt(b"a session").expect("sealed");
        tickets.share(&[TicketKey::random().expect("random numbers")]);
        assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"a session"[..]));
    }

    #[test]
    fn a_changed_a_short_and_a_long_ticket_are_refused() {
        let key = TicketKey::random().expect("random numbers");
        let tickets = tickets(std::slice::from_ref(&key));
        let ticket = tickets.encrypt(b"a session").expect("sealed");
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets.decrypt(&changed), None, "byte {at}");
            assert_eq!(tickets.decrypt(&ticket[..at]), None, "{at} bytes");
        }
        assert_eq!(tickets.decrypt(&[&key.0[..NAME_LEN], &[0; MAX_TICKET]].concat()), None);
    }
}
