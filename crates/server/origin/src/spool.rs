//! Content on the disk: of requests until it is complete, and of responses until their clients read it.
//! It is in unnamed files, which no other process can open, and which disappear with the process
//! (docs/decisions/uploads-and-slow-clients.md, uploads-and-slow-clients.md).
//!
//! The total size of each kind is limited (`limits.body_disk`, `limits.client_backlog_disk`), for all
//! sites of the process, because they share one disk. If the limit is reached, or the disk fails, a
//! request is refused with a specific reason, and a response waits for its client. Files are written
//! and read in pieces, in the runtime's blocking threads.

use bytes::Bytes;
use config::Config;
use reasons::refusal::Refusal;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use trusted_files::Writers;

/// The minimum that a file counts for, in bytes, because even a short file needs a descriptor.
const FILE_BYTES_MIN: u64 = 64 << 10;
/// Maximum size of one read or write, in bytes.
pub const PIECE_BYTES: usize = 256 << 10;
/// Time limit for one read or write.
const DISK_WAIT: Duration = Duration::from_secs(30);
/// The fraction (1/`RING_SHARE`) of the disk space for responses that one response may use.
const RING_SHARE: u64 = 8;
/// The minimum that a response on the disk counts for and may use, in bytes.
pub const RING_BYTES_MIN: u64 = 256 << 10;
/// Notified when a file has released disk space.
static FREED: Notify = Notify::const_new();
/// Maximum number of file names that are tried, on file systems without unnamed files.
const NAMES_TRIED: u32 = 16;

/// Disk space of request content of all sites, in bytes.
static USED: AtomicU64 = AtomicU64::new(0);
/// Disk space of response content of all sites, in bytes.
static RESPONSES_USED: AtomicU64 = AtomicU64::new(0);

/// Disk space that request content uses now, in bytes.
pub fn used_bytes() -> u64 {
    USED.load(Ordering::Relaxed)
}

/// Disk space that response content uses now, in bytes.
pub fn response_bytes() -> u64 {
    RESPONSES_USED.load(Ordering::Relaxed)
}

/// A directory for content on the disk, with the limit for its size.
pub struct Spool {
    directory: PathBuf,
    bytes_max: u64,
    used: &'static AtomicU64,
}

impl Spool {
    /// For request content, as configured. Blocks.
    pub fn new(config: &Config) -> Spool {
        let directory = config.uploads.clone().unwrap_or_else(usual_directory);
        Spool { directory, bytes_max: config.limits.body_disk, used: &USED }
    }

    /// For response content, as configured. Blocks.
    pub fn for_responses(config: &Config) -> Spool {
        let bytes_max = config.limits.client_backlog_disk;
        Spool { bytes_max, used: &RESPONSES_USED, ..Spool::new(config) }
    }

    /// The limit for the total size of all files, in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Checks that files can be created in the directory. Blocks.
    ///
    /// # Errors
    /// The operator has configured the directory, and it cannot be used: a sentence for the operator.
    /// An unusable default directory is only logged, because a site may never need it.
    pub fn look(config: &Config) -> Result<(), String> {
        let spool = Spool::new(config);
        let made = trusted_files::directory(&spool.directory, Writers::Sticky)
            .and_then(|()| unnamed(&spool.directory));
        let Err(error) = made else { return Ok(()) };
        let directory = spool.directory.display();
        if config.uploads.is_some() {
            return Err(format!("uploads {directory}: no file can be made there: {error}"));
        }
        tracing::warn!(event = "uploads-unusable", %directory, %error);
        Ok(())
    }

    /// Creates a file for request content.
    ///
    /// # Errors
    /// The limit is reached, or the system cannot create a file, which is logged.
    pub async fn file(&self) -> Result<SpoolFile, Refusal> {
        let mut taken = DiskReservation { used: self.used, bytes: 0 };
        taken.raise(FILE_BYTES_MIN, self.bytes_max)?;
        let directory = self.directory.clone();
        let file = at_the_disk(&self.directory, move || unnamed(&directory)).await?;
        Ok(SpoolFile {
            file: Arc::new(file),
            directory: self.directory.clone(),
            bytes_max: self.bytes_max,
            length: 0,
            read: 0,
            reading: PieceReader::default(),
            taken,
        })
    }

    /// Creates a file for response content.
    ///
    /// # Errors
    /// As for [`Spool::file`].
    pub async fn ring(&self) -> Result<Ring, Refusal> {
        let mut taken = DiskReservation { used: self.used, bytes: 0 };
        taken.raise(RING_BYTES_MIN, self.bytes_max)?;
        let directory = self.directory.clone();
        let file = at_the_disk(&self.directory, move || unnamed(&directory)).await?;
        let capacity = (self.bytes_max / RING_SHARE).max(RING_BYTES_MIN);
        Ok(Ring {
            file: Arc::new(file),
            directory: self.directory.clone(),
            bytes_max: self.bytes_max,
            capacity,
            taken: Mutex::new(taken),
        })
    }
}

/// The file of a response, which is written and read at the same time. Parts that were read are
/// overwritten, so the file is never longer than `capacity`, however long the response is.
pub struct Ring {
    file: Arc<File>,
    directory: PathBuf,
    bytes_max: u64,
    capacity: u64,
    /// The disk space that the file uses; locked to reserve more.
    taken: Mutex<DiskReservation>,
}

impl Ring {
    /// Maximum number of unread bytes in the file.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Writes a piece at the position `at`, counted from the beginning of the response. There must be
    /// room for it beside the unread bytes. Returns by how many bytes the file has grown.
    ///
    /// # Errors
    /// The limit is reached, or the disk fails, which is logged.
    pub async fn write(&self, piece: Bytes, at: u64) -> Result<u64, Refusal> {
        let to = (at + piece.len() as u64).min(self.capacity);
        let grown =
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).raise(to, self.bytes_max)?;
        let (file, (offset, first)) = (self.file.clone(), self.place(at, piece.len()));
        let write = move || {
            file.write_all_at(&piece[..first], offset)?;
            file.write_all_at(&piece[first..], 0)
        };
        at_the_disk(&self.directory, write).await?;
        Ok(grown)
    }

    /// Reads at most `count` bytes at the position `at`, counted from the beginning of the response.
    ///
    /// # Errors
    /// The disk fails, which is logged.
    pub fn poll_read(
        &self,
        reader: &mut PieceReader,
        at: u64,
        count: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Refusal>> {
        let (offset, first) = self.place(at, count);
        let read = ready!(reader.poll(&self.file, offset, first, cx));
        Poll::Ready(read.map_err(|error| not_kept(&self.directory, &error)))
    }

    /// The offset in the file for the position `at`, and how many of `count` bytes fit before the file
    /// wraps around.
    fn place(&self, at: u64, count: usize) -> (u64, usize) {
        let offset = at % self.capacity;
        let to_end = usize::try_from(self.capacity - offset).unwrap_or(usize::MAX);
        (offset, count.min(to_end))
    }
}

/// Reads pieces of a file, one at a time.
#[derive(Default)]
pub struct PieceReader(Option<JoinHandle<io::Result<Bytes>>>);

impl PieceReader {
    /// Reads `count` bytes at the offset `at`. Must be polled with the same arguments until it is
    /// ready.
    ///
    /// # Errors
    /// The error from the system; the file may be too short.
    pub fn poll(
        &mut self,
        file: &Arc<File>,
        at: u64,
        count: usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        let reading = self.0.get_or_insert_with(|| {
            // Allocated here, because the allocator has a separate heap for each of many blocking
            // threads.
            let (file, mut piece) = (file.clone(), vec![0; count]);
            spawn_blocking(move || {
                file.read_exact_at(&mut piece, at)?;
                Ok(piece.into())
            })
        });
        let read = ready!(Pin::new(reading).poll(cx));
        self.0 = None;
        Poll::Ready(read.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}

/// The default directory: `TMPDIR` if set, else `/var/tmp`, which is on a disk even if `/tmp` is in
/// memory. If `/var/tmp` is not writable, as in a container with a read-only system, `/tmp`. Blocks.
fn usual_directory() -> PathBuf {
    let var = Path::new("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && unnamed(var).is_ok() {
        var.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Content on the disk, which is written completely and then read once.
pub struct SpoolFile {
    file: Arc<File>,
    directory: PathBuf,
    bytes_max: u64,
    length: u64,
    read: u64,
    reading: PieceReader,
    taken: DiskReservation,
}

impl SpoolFile {
    /// Appends pieces.
    ///
    /// # Errors
    /// The limit is reached, or the disk fails, which is logged.
    pub async fn append(&mut self, pieces: [Bytes; 2]) -> Result<(), Refusal> {
        let more: usize = pieces.iter().map(Bytes::len).sum();
        let length = self.length.saturating_add(more as u64);
        self.taken.raise(length, self.bytes_max)?;
        let (file, mut at) = (self.file.clone(), self.length);
        let write = move || {
            pieces.iter().try_for_each(|piece| {
                file.write_all_at(piece, at)?;
                at += piece.len() as u64;
                Ok(())
            })
        };
        at_the_disk(&self.directory, write).await?;
        self.length = length;
        Ok(())
    }

    /// Unread content, in bytes.
    pub fn left(&self) -> u64 {
        self.length - self.read
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The disk fails, which is logged.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Refusal>>> {
        let (left, at) = (self.left(), self.read);
        if left == 0 {
            return Poll::Ready(None);
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let read = ready!(self.reading.poll(&self.file, at, count, cx));
        Poll::Ready(Some(match read {
            Ok(piece) => {
                self.read += piece.len() as u64;
                Ok(piece)
            }
            Err(error) => Err(not_kept(&self.directory, &error)),
        }))
    }
}

/// The disk space reserved for a file; released when it is dropped.
struct DiskReservation {
    used: &'static AtomicU64,
    bytes: u64,
}

impl DiskReservation {
    /// Reserves more, to a total of `to` bytes. Returns by how many bytes the reservation has grown.
    fn raise(&mut self, to: u64, bytes_max: u64) -> Result<u64, Refusal> {
        let more = to.saturating_sub(self.bytes);
        let sum = |used: u64| used.checked_add(more).filter(|sum| *sum <= bytes_max);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        taken.map_err(|_| Refusal::ContentNoRoom)?;
        self.bytes += more;
        Ok(more)
    }
}

impl Drop for DiskReservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.used.fetch_sub(self.bytes, Ordering::Relaxed);
            FREED.notify_waiters();
        }
    }
}

/// Completes when disk space is released after this call.
pub fn freed() -> Notified<'static> {
    FREED.notified()
}

/// Runs `work` in a blocking thread, within [`DISK_WAIT`].
async fn at_the_disk<T: Send + 'static>(
    directory: &Path,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = match timeout(DISK_WAIT, spawn_blocking(work)).await {
        Ok(done) => done.unwrap_or_else(|error| Err(io::Error::other(error))),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    };
    done.map_err(|error| not_kept(directory, &error))
}

fn not_kept(directory: &Path, error: &io::Error) -> Refusal {
    tracing::error!(event = "content-not-kept", directory = %directory.display(), %error);
    Refusal::ContentNotKept
}

/// Creates an unnamed file, which only this process can open.
fn unnamed(directory: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(file.into()),
        // Not every file system supports such files. Kernels without support interpret the call as
        // opening the directory.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => named_no_more(directory),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file on a file system without unnamed files, and removes its name at once.
fn named_no_more(directory: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    for _ in 0..NAMES_TRIED {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("pagewell-{}-{number}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::os::unix::fs::MetadataExt;

    fn spool(bytes_max: u64) -> Spool {
        let used = Box::leak(Box::new(AtomicU64::new(0)));
        Spool { directory: std::env::temp_dir(), bytes_max, used }
    }

    fn pieces(one: &'static [u8], two: &'static [u8]) -> [Bytes; 2] {
        [Bytes::from_static(one), Bytes::from_static(two)]
    }

    #[tokio::test]
    async fn written_content_is_read_once_in_order() {
        let spool = spool(1 << 20);
        let mut file = spool.file().await.unwrap();
        let long: Vec<u8> = (0..PIECE_BYTES + 5).map(|at| (at % 251) as u8).collect();
        file.append(pieces(b"ab", b"")).await.unwrap();
        file.append([Bytes::from(long.clone()), Bytes::from_static(b"z")]).await.unwrap();
        assert_eq!(file.left(), 2 + long.len() as u64 + 1);
        let mut all = Vec::new();
        while let Some(piece) = poll_fn(|cx| file.poll_next(cx)).await {
            all.extend_from_slice(&piece.unwrap());
        }
        assert_eq!(all, [b"ab", &*long, b"z"].concat());
        assert_eq!(file.left(), 0);
        drop(file);
        assert_eq!(spool.used.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn the_sum_is_bounded_and_refused_content_takes_no_room() {
        let spool = spool(2 * FILE_BYTES_MIN);
        let mut one = spool.file().await.unwrap();
        let two = spool.file().await.unwrap();
        assert_eq!(spool.file().await.err(), Some(Refusal::ContentNoRoom), "however short");
        let long = Bytes::from(vec![0; FILE_BYTES_MIN as usize]);
        one.append([long.clone(), Bytes::new()]).await.unwrap();
        let more = || [Bytes::from_static(b"x"), Bytes::new()];
        assert_eq!(one.append(more()).await, Err(Refusal::ContentNoRoom));
        assert_eq!(spool.used.load(Ordering::Relaxed), spool.bytes_max);
        drop(two);
        one.append(more()).await.unwrap();
        assert_eq!(one.left(), FILE_BYTES_MIN + 1);
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_keeps_nothing() {
        let spool = Spool { directory: "/nowhere/at/all".into(), ..spool(1 << 20) };
        assert_eq!(spool.file().await.err(), Some(Refusal::ContentNotKept));
        assert_eq!(spool.used.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_ring_is_written_over_where_it_was_read() {
        let spool = spool(8 * RING_BYTES_MIN);
        let ring = spool.ring().await.unwrap();
        let capacity = ring.capacity();
        assert_eq!(capacity, RING_BYTES_MIN);
        let piece: Bytes = (0..100_000).map(|at| (at % 251) as u8).collect();
        let (mut written, mut read) = (0, 0);
        let (mut reader, mut all) = (PieceReader::default(), Vec::new());
        for _ in 0..7 {
            ring.write(piece.clone(), written).await.unwrap();
            written += piece.len() as u64;
            while read < written {
                let left = (written - read) as usize;
                let got = poll_fn(|cx| ring.poll_read(&mut reader, read, left, cx)).await.unwrap();
                read += got.len() as u64;
                all.extend_from_slice(&got);
            }
        }
        assert_eq!(all, piece.repeat(7));
        assert_eq!(spool.used.load(Ordering::Relaxed), capacity, "however much went through it");
        drop(ring);
        assert_eq!(spool.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn files_have_no_name_and_are_ours_alone() {
        for make in [unnamed, named_no_more] {
            let found = make(&std::env::temp_dir()).unwrap().metadata().unwrap();
            assert_eq!((found.nlink(), found.mode() & 0o777), (0, 0o600));
        }
    }
}
