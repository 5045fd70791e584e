//! From a path to a file below the document root: nothing outside the root, nothing hidden, and only existing
//! files are run or sent. A path to an existing hidden file is refused.
//!
//! The root is a directory of this crate; nothing is written.

use config::{FilesConfig, HIDDEN, Symlinks};
use origin::routes::{Route, route};
use std::path::Path;
use std::sync::LazyLock;

static FILES: LazyLock<FilesConfig> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("root");
    FilesConfig {
        root: root.canonicalize().expect("it is part of this crate"),
        front_controller: "index.php".into(),
        hidden: HIDDEN.iter().map(|pattern| (*pattern).to_owned()).collect(),
        scripts: vec!["php".into()],
        indexes: FilesConfig::indexes_of(&["php".into()]),
        hides_libraries: true,
        symlinks: Symlinks::InRoot,
        internal: Vec::new(),
    }
});

/// Resolves the data as a path.
pub fn run(data: &[u8]) {
    let Ok(path) = std::str::from_utf8(data) else { return };
    match route(&FILES, path) {
        Route::Static(file) => inside(&file),
        Route::Script(script) => {
            inside(&script.filename);
            assert!(script.name.starts_with('/') && !script.path_info.contains('\0'));
        }
        Route::AddSlash(path) => assert!(path.starts_with('/') && path.ends_with('/')),
        Route::NotFound | Route::Hidden(_) | Route::Malformed => {}
    }
}

fn inside(file: &Path) {
    let below = file.strip_prefix(&FILES.root).expect("below the root");
    let hidden = |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes()[0] == b'.';
    let mut parts = below.components().peekable();
    parts.next_if(|part| part.as_os_str() == ".well-known");
    assert!(!parts.any(hidden), "{}", file.display());
    assert!(file.is_file(), "{}", file.display());
}
