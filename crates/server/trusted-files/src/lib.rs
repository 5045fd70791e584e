//! Opens or creates the files and directories that the configuration names: snapshots, journals, content on the
//! disk, captures, the access log, certificates, passwords. Each is checked before it is used. A [`FileStamp`] shows
//! whether one that was read has changed.
//!
//! | | kind | owner | may others write? | links |
//! |---|---|---|---|---|
//! | [`directory`] | directory | trusted | no, or only with the sticky bit ([`Writers`]) | followed |
//! | [`create_directory`] | directory, created if it is missing | trusted | no | followed |
//! | [`open`], [`read`] | regular file | trusted | no | followed: certificates are often links |
//! | [`create`] | regular file | trusted | no | refused, also a second name where others may write |
//! | [`open_log`] | the same, a device, a FIFO | trusted | no, but a device | refused |
//!
//! Trusted owners are root, the user of this process, and the user that it will become ([`becomes`]).
//! A file is checked when it is open, so it cannot be replaced in between. The directories above are not
//! checked: a user that can replace one cannot make the replacement belong to a trusted owner.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Write permission of the group and of all others.
const OTHERS_WRITE: u32 = 0o022;
/// The mode of a new directory: only its owner may list, enter and write it.
const DIRECTORY_MODE: u32 = 0o700;
/// The sticky bit: in such a directory, only the owner of a file may rename or delete it.
const STICKY: u32 = 0o1000;

/// The user that this process will become; root if none.
static BECOMES: AtomicU32 = AtomicU32::new(0);

/// Trusts the files of this user, which the process will become.
pub fn becomes(uid: u32) {
    BECOMES.store(uid, Ordering::Relaxed);
}

/// The users that may create files in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// Only the owner.
    Owner,
    /// Everybody, if the sticky bit is set, as for `/tmp`. Only for files without a name.
    Sticky,
}

/// The content of a file that is opened for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is kept, and overwritten from the start.
    Kept,
    /// It is removed.
    Removed,
    /// It is kept, and appended to.
    Appended,
}

/// Checks a directory.
///
/// # Errors
/// It is not a directory, or others could replace its files: a sentence with the remedy.
pub fn directory(path: &Path, writers: Writers) -> Result<()> {
    let found = metadata(path)?;
    if !found.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    if writers == Writers::Sticky && found.mode() & STICKY != 0 {
        owner(&found, path)
    } else {
        unshared(&found, path)
    }
}

/// Creates a directory if it is missing, with those above it, for files that only this process writes. A new one has
/// mode 0700; one that exists is not changed, but checked.
///
/// # Errors
/// The error of the system, or as for [`directory`] with [`Writers::Owner`].
pub fn create_directory(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
    directory(path, Writers::Owner)
}

/// The signs of a changed file: device, inode, size in bytes, and the time of its last change (`ctime`). Programs can
/// set the modification time, but not this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl FileStamp {
    /// The stamp of the file to which this path leads now; `None` if the system does not show it.
    pub fn at(path: &Path) -> Option<FileStamp> {
        metadata(path).ok().as_ref().map(FileStamp::of)
    }

    /// The stamp of the file with this metadata.
    pub fn of(found: &Metadata) -> FileStamp {
        FileStamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed_s: found.ctime(),
            changed_ns: found.ctime_nsec(),
        }
    }
}

/// Opens a file to read it.
///
/// # Errors
/// The error of the system, or the file is not a regular one, or others could have written it.
pub fn open(path: &Path) -> Result<File> {
    // Looked at first, because opening a device may have an effect.
    regular(&metadata(path)?)?;
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    regular(&found)?;
    unshared(&found, path)?;
    Ok(file)
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`open`], or the file is longer.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Reads a text of at most `bytes_max` bytes.
///
/// # Errors
/// As for [`read`], or it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let bytes = read(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Opens a file to write it, and to read it. Creates it with this mode if it is missing.
///
/// # Errors
/// The error of the system, or the file is a link or not a regular one, or others may write it.
pub fn create(path: &Path, existing: Existing, mode: u32) -> Result<File> {
    writable(path, existing, |options| options.create(true).mode(mode))
}

/// Opens the destination of a log, to append to it: as [`create`], or a device, or a FIFO, for which no reader is
/// waited for.
///
/// # Errors
/// As for [`create`]; a FIFO must not be another user's either.
pub fn open_log(path: &Path, mode: u32) -> Result<File> {
    let kind = std::fs::symlink_metadata(path).map(|found| found.file_type());
    let is_fifo = kind.as_ref().is_ok_and(FileTypeExt::is_fifo);
    if !is_fifo && !kind.is_ok_and(|kind| kind.is_char_device()) {
        return create(path, Existing::Appended, mode);
    }
    let mut options = OpenOptions::new();
    // Opened for reading, too, a FIFO has a reader at any time.
    let options = if is_fifo { options.read(true).write(true) } else { options.append(true) };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = options.custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if is_fifo && found.file_type().is_fifo() {
        unshared(&found, path)?;
    } else if !is_fifo && found.file_type().is_char_device() {
        owner(&found, path)?;
    } else {
        return Err(refused("it is another file than a moment ago".into()));
    }
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a file to append to it, and to read it, if it exists.
///
/// # Errors
/// As for [`create`], or it does not exist.
pub fn append(path: &Path) -> Result<File> {
    writable(path, Existing::Appended, |options| options)
}

/// Sets the mode of a Unix socket that this process has bound at this path.
///
/// # Errors
/// The error of the system, or another file has taken its place.
pub fn set_socket_mode(path: &Path, mode: u32) -> Result<()> {
    let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits() as i32;
    let socket = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = socket.metadata()?;
    if !found.file_type().is_socket() {
        return Err(refused("another file has taken the place of the socket".into()));
    }
    owner(&found, path)?;
    // The open socket, whatever the path leads to by now.
    let open = format!("/proc/self/fd/{}", socket.as_raw_fd());
    std::fs::set_permissions(open, Permissions::from_mode(mode))
}

fn writable(
    path: &Path,
    existing: Existing,
    with: impl FnOnce(&mut OpenOptions) -> &mut OpenOptions,
) -> Result<File> {
    // Opening a FIFO to read and write never blocks, but its other end would.
    if let Ok(found) = std::fs::symlink_metadata(path) {
        regular(&found)?;
    }
    let mut options = OpenOptions::new();
    let options = match existing {
        Existing::Appended => options.read(true).append(true),
        Existing::Kept | Existing::Removed => options.read(true).write(true),
    };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = with(options).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    regular(&found)?;
    unshared(&found, path)?;
    if found.nlink() > 1 && !is_in_own_directory(path) {
        return Err(refused("it has a second name, which another user may have given it".into()));
    }
    if existing == Existing::Removed {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Whether only trusted users can create names in the directory of this file.
fn is_in_own_directory(path: &Path) -> bool {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    directory(above.unwrap_or(Path::new(".")), Writers::Owner).is_ok()
}

fn regular(found: &Metadata) -> Result<()> {
    let kind = found.file_type();
    let kind = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(refused(format!("it is {kind} and not a file")))
}

/// Checks that no other user owns the file or may write it.
fn unshared(found: &Metadata, path: &Path) -> Result<()> {
    owner(found, path)?;
    if found.mode() & OTHERS_WRITE != 0 {
        let path = path.display();
        return Err(refused(format!("other users may write it: chmod go-w {path}")));
    }
    Ok(())
}

fn owner(found: &Metadata, path: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let (owner, path) = (found.uid(), path.display());
    if is_trusted(owner, own, BECOMES.load(Ordering::Relaxed)) {
        return Ok(());
    }
    Err(refused(format!("it belongs to the user {owner}, who can change it: chown {own} {path}")))
}

fn is_trusted(owner: u32, own: u32, becomes: u32) -> bool {
    [0, own, becomes].contains(&owner)
}

fn refused(why: String) -> Error {
    Error::new(ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::path::PathBuf;

    /// A directory that is removed at the end.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("trusted-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
            Place(path)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn file(&self, name: &str, mode: u32) -> PathBuf {
            let path = self.at(name);
            fs::write(&path, "content").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        fn fifo(&self, name: &str) -> PathBuf {
            let path = self.at(name);
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
            path
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn why<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_belongs_to_its_writer() {
        let place = Place::new("directory");
        assert!(directory(&place.0, Writers::Owner).is_ok());
        mode(&place.0, 0o1777);
        assert!(why(directory(&place.0, Writers::Owner)).contains("chmod go-w"));
        assert!(directory(&place.0, Writers::Sticky).is_ok());
        mode(&place.0, 0o770);
        for writers in [Writers::Owner, Writers::Sticky] {
            assert!(why(directory(&place.0, writers)).contains("chmod go-w"));
        }
        mode(&place.0, 0o700);
        let fifo = place.fifo("fifo");
        assert!(directory(&fifo, Writers::Owner).is_err());
        assert!(directory(&place.file("file", 0o600), Writers::Owner).is_err());
    }

    #[test]
    fn a_new_directory_is_private_and_an_existing_one_is_checked() {
        let place = Place::new("new-directory");
        let (above, new) = (place.at("above"), place.at("above/new"));
        create_directory(&new).unwrap();
        for created in [&above, &new] {
            assert_eq!(metadata(created).unwrap().mode() & 0o777, 0o700);
        }
        // Others may read a directory that an operator has created, and its mode stays.
        mode(&new, 0o755);
        create_directory(&new).unwrap();
        assert_eq!(metadata(&new).unwrap().mode() & 0o777, 0o755);
        for shared in [0o770, 0o702, 0o1777] {
            mode(&new, shared);
            let why = why(create_directory(&new));
            let remedy = format!("chmod go-w {}", new.display());
            assert!(why.contains("other users may write it") && why.ends_with(&remedy), "{why}");
        }
        assert!(create_directory(&place.file("file", 0o600)).is_err());
    }

    #[test]
    fn links_and_fifos_are_never_written() {
        let place = Place::new("kinds");
        let target = place.file("target", 0o600);
        let link = place.at("link");
        symlink(&target, &link).unwrap();
        let fifo = place.fifo("fifo");
        for existing in [Existing::Kept, Existing::Removed, Existing::Appended] {
            assert!(why(create(&link, existing, 0o600)).contains("a symbolic link"));
            assert!(why(create(&fifo, existing, 0o600)).contains("a FIFO"));
        }
        assert_eq!(fs::read(&target).unwrap(), b"content");
        assert!(why(append(&link)).contains("a symbolic link"));
        // A file that is read may be a link, but not a FIFO, which would block.
        assert_eq!(read(&link, 7).unwrap(), b"content");
        assert_eq!(read(&link, 6).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(why(read(&fifo, 7)).contains("a FIFO"));
        assert!(why(open(Path::new("/dev/null"))).contains("a device"));
    }

    #[test]
    fn a_file_that_others_may_write_or_own_is_refused() {
        let place = Place::new("others");
        let file = place.file("file", 0o620);
        assert!(why(open(&file)).contains("other users may write it"));
        assert!(why(create(&file, Existing::Removed, 0o600)).contains("other users may write it"));
        mode(&file, 0o640);
        assert!(open(&file).is_ok());
        if rustix::process::geteuid().is_root() {
            chown(&file, Some(4711), None).unwrap();
            assert!(why(open(&file)).contains("belongs to the user 4711"));
            assert!(why(create(&file, Existing::Removed, 0o600)).contains("the user 4711"));
            chown(&place.0, Some(4711), None).unwrap();
            assert!(why(directory(&place.0, Writers::Sticky)).contains("the user 4711"));
        }
        assert_eq!(fs::read(&file).unwrap(), b"content");
    }

    #[test]
    fn only_root_the_own_user_and_the_next_are_trusted() {
        assert!(is_trusted(0, 7, 0) && is_trusted(7, 7, 0) && is_trusted(8, 0, 8));
        assert!(!is_trusted(8, 7, 0) && !is_trusted(8, 0, 0) && !is_trusted(9, 7, 8));
    }

    #[test]
    fn a_stamp_changes_with_its_file() {
        let place = Place::new("stamp");
        let (file, other) = (place.file("file", 0o600), place.file("other", 0o600));
        let first = FileStamp::at(&file).unwrap();
        assert_eq!(FileStamp::of(&metadata(&file).unwrap()), first);
        fs::rename(&other, &file).unwrap();
        let replaced = FileStamp::at(&file).unwrap();
        assert_ne!(replaced, first, "another file of the same size");
        fs::write(&file, "longer content").unwrap();
        assert_ne!(FileStamp::at(&file), Some(replaced));
        assert_eq!(FileStamp::at(&other), None);
    }

    #[test]
    fn a_log_may_be_a_fifo_or_a_device() {
        let place = Place::new("log");
        let fifo = place.fifo("fifo");
        // Nobody reads it, and nothing blocks.
        use std::io::Write;
        open_log(&fifo, 0o640).unwrap().write_all(b"a line").unwrap();
        mode(&fifo, 0o622);
        assert!(why(open_log(&fifo, 0o640)).contains("other users may write it"));
        assert!(open_log(Path::new("/dev/null"), 0o640).is_ok());
        assert!(open_log(&place.at("new"), 0o640).is_ok());
        assert_eq!(metadata(place.at("new")).unwrap().mode() & 0o777, 0o640);
        let link = place.at("link");
        symlink("/dev/null", &link).unwrap();
        assert!(why(open_log(&link, 0o640)).contains("a symbolic link"));
    }

    #[test]
    fn only_a_socket_gets_the_mode_of_one() {
        let place = Place::new("socket");
        let path = place.at("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&path).unwrap();
        set_socket_mode(&path, 0o606).unwrap();
        assert_eq!(metadata(&path).unwrap().mode() & 0o777, 0o606);
        let (target, link) = (place.file("target", 0o600), place.at("link"));
        symlink(&target, &link).unwrap();
        assert!(why(set_socket_mode(&link, 0o666)).contains("another file"));
        assert_eq!(metadata(&target).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_second_name_is_refused_where_others_may_give_one() {
        let place = Place::new("names");
        let file = place.file("file", 0o600);
        fs::hard_link(&file, place.at("other")).unwrap();
        assert!(create(&file, Existing::Appended, 0o600).is_ok());
        mode(&place.0, 0o1777);
        assert!(why(create(&file, Existing::Removed, 0o600)).contains("a second name"));
        assert_eq!(fs::read(&file).unwrap(), b"content");
    }
}
