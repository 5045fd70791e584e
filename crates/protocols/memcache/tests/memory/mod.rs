//! Items in a map: the simplest store, for the tests of the protocol.
//!
//! It evicts nothing, has one lock, and stores everything.

use memcache::{
    Answer, Decoder, Edit, EditResult, Item, Items, Limits, Moment, NewCas, Next, Step, execute,
};
use std::collections::HashMap;
use std::sync::Mutex;

#[derive(Default)]
pub struct Memory {
    inside: Mutex<MemoryState>,
}

#[derive(Default)]
struct MemoryState {
    items: HashMap<Vec<u8>, Item>,
    cas: u64,
    flush: Option<Moment>,
}

impl MemoryState {
    fn found(&self, key: &[u8], now: Moment) -> Option<&Item> {
        let flushed = |item: &Item| self.flush.is_some_and(|at| at <= now && item.stored < at);
        self.items.get(key).filter(|item| !item.has_ended(now) && !flushed(item))
    }

    fn put(&mut self, key: &[u8], mut item: Item, new: NewCas) -> EditResult {
        if new == NewCas::Yes {
            self.cas += 1;
            item.cas = self.cas;
        }
        self.items.insert(key.to_vec(), item.clone());
        EditResult::Done(Some(item))
    }
}

impl Items for Memory {
    fn get(&self, key: &[u8], now: Moment) -> Option<Item> {
        self.inside.lock().expect("no test panics under it").found(key, now).cloned()
    }

    fn edit(
        &self,
        key: &[u8],
        now: Moment,
        edit: &mut dyn FnMut(Option<&Item>) -> Edit,
    ) -> EditResult {
        let mut inside = self.inside.lock().expect("no test panics under it");
        let found = inside.found(key, now).cloned();
        match edit(found.as_ref()) {
            Edit::Keep => EditResult::Done(None),
            Edit::Put(item) => inside.put(key, item, NewCas::Yes),
            Edit::Change(item, new) => inside.put(key, item, new),
            Edit::Remove | Edit::Discard => {
                inside.items.remove(key);
                EditResult::Done(None)
            }
        }
    }

    fn flush(&self, at: Moment, now: Moment) {
        let mut inside = self.inside.lock().expect("no test panics under it");
        if at <= now {
            inside.items.clear();
        } else {
            inside.flush = Some(at);
        }
    }

    fn stats(&self, _: Moment) -> Vec<(&'static str, String)> {
        vec![(
            "curr_items",
            self.inside.lock().expect("no test panics under it").items.len().to_string(),
        )]
    }

    fn version(&self) -> &str {
        "1.6.18"
    }
}

/// A connection to a [`Memory`].
pub struct Connection<'m> {
    memory: &'m Memory,
    decoder: Decoder,
    input: bytes::BytesMut,
    limits: Limits,
    pub open: bool,
}

impl<'m> Connection<'m> {
    pub fn new(memory: &'m Memory, limits: Limits) -> Connection<'m> {
        let (decoder, input) = (Decoder::new(limits), bytes::BytesMut::new());
        Connection { memory, decoder, input, limits, open: true }
    }

    /// Sends bytes, and returns the answer.
    pub fn send(&mut self, bytes: &[u8], now: Moment) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let mut answer = Answer::default();
        while self.open {
            match self.decoder.next(&mut self.input) {
                Step::More(_) => break,
                Step::Close(_) => self.open = false,
                Step::Request(request) => {
                    let next = execute(&request, self.memory, self.limits, now, &mut answer);
                    self.open = next == Next::Go;
                }
            }
        }
        answer.to_vec()
    }

    /// The number of bytes that the connection has buffered.
    #[allow(dead_code, reason = "not every test asks")]
    pub fn held(&self) -> usize {
        self.input.len()
    }
}
