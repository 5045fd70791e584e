//! The functions of MariaDB and MySQL whose result depends on their arguments alone, and those that depend
//! on the time of day.
//!
//! Invariant: a function that is not listed may be a stored function, which can read any table. Functions
//! of the session, of locks and of files are not listed either, nor those that only one of the two servers
//! has: on the other, a stored function may have the name.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The things that the result of a function depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// Its arguments, and what does not change while a site runs.
    Arguments,
    /// Also the time of day.
    Clock,
    /// Chance, or the locks that other connections have at the moment.
    Chance,
}

/// Looks up a function by its name.
pub(crate) fn known(name: &str) -> Option<Function> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    KNOWN.get(name.to_ascii_lowercase().as_str()).copied()
}

/// The functions by their names: a statement may have tens of thousands of words.
static KNOWN: LazyLock<HashMap<&str, Function>> = LazyLock::new(|| {
    let lists =
        [(CHANCE, Function::Chance), (CLOCK, Function::Clock), (ARGUMENTS, Function::Arguments)];
    let names = |(list, function): (&'static str, Function)| {
        list.split_ascii_whitespace().map(move |name| (name, function))
    };
    lists.into_iter().flat_map(names).collect()
});

/// The longest name, in bytes, and more.
const NAME_BYTES_MAX: usize = 32;

const CLOCK: &str = "
    curdate current_date current_time current_timestamp curtime localtime localtimestamp now sysdate
    unix_timestamp utc_date utc_time utc_timestamp";

const CHANCE: &str =
    "get_lock is_free_lock is_used_lock rand random_bytes release_lock uuid uuid_short";

const ARGUMENTS: &str = "
    abs acos adddate addtime ascii asin atan atan2 avg bin bit_and bit_count bit_length bit_or
    bit_xor cast ceil ceiling char char_length character_length charset coalesce coercibility collation
    concat concat_ws conv convert convert_tz cos cot count crc32 cume_dist database date date_add
    date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear degrees dense_rank elt exp
    export_set extract extractvalue field find_in_set first_value floor format found_rows from_base64
    from_days from_unixtime get_format greatest group_concat hex hour if ifnull inet6_aton
    inet6_ntoa inet_aton inet_ntoa insert instr interval is_ipv4 is_ipv6 isnull json_array json_arrayagg
    json_contains json_contains_path json_depth json_extract json_keys json_length json_object
    json_objectagg json_quote json_search json_type json_unquote
    json_valid json_value lag last_day last_value lcase lead least left length ln locate log log10 log2
    lower lpad ltrim make_set makedate maketime match max md5 microsecond mid min minute mod month monthname
     nth_value ntile nullif oct octet_length ord percent_rank period_add
    period_diff pi position pow power quarter quote radians rank regexp_instr regexp_replace
    regexp_substr repeat replace reverse right round row_number rpad rtrim schema sec_to_time second sha
    sha1 sha2 sign sin soundex space sqrt st_x st_y std stddev stddev_pop stddev_samp str_to_date strcmp
    subdate substr substring substring_index subtime sum tan time time_format time_to_sec timediff timestamp
    timestampadd timestampdiff to_base64 to_days to_seconds trim truncate ucase unhex upper
    values var_pop var_samp variance version week weekday weekofyear weight_string year yearweek";
