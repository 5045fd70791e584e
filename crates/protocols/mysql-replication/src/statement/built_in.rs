//! The names before a parenthesis that are no stored function, though no database is named.
//!
//! Invariant: a name that is not listed may be a stored function, which may write any table. So only names that both
//! servers have since MariaDB 10.6 and MySQL 8.0 are listed: on the other server, a stored function may have the name.
//! A built-in function counts only if the parenthesis follows at once: `COUNT (a)` may call a stored function. Sources: the
//! manuals of both servers, "Built-In Functions", "Reserved Words", and MySQL's "Function Name Parsing and
//! Resolution".

/// Whether a name without quotes before a parenthesis is no stored function. `is_apart`: something is between them.
pub(super) fn is_built_in(name: &str, is_apart: bool) -> bool {
    let is_in =
        |list: &str| list.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(name));
    is_in(SYNTAX) || (!is_apart && is_in(FUNCTIONS))
}

/// Reserved words that a parenthesis may follow, sorted: they name nothing unless they are in quotes.
const SYNTAX: &str = "
    AND AS BETWEEN BINARY BY CASE CHAR DECIMAL DISTINCT DIV ELSE EXCEPT EXISTS FROM GROUP
    HAVING IF IN INDEX INTERVAL JOIN KEY LEFT LIKE LINES MATCH MOD NOT ON OR OVER PARTITION
    REGEXP REPLACE RIGHT RLIKE SELECT SET STRAIGHT_JOIN THEN UNION USING VALUES VARBINARY
    VARCHAR WHEN WHERE XOR";

/// Functions, sorted.
const FUNCTIONS: &str = "
    ABS ACOS ADDDATE ADDTIME AES_DECRYPT AES_ENCRYPT ASCII ASIN ATAN ATAN2 AVG BENCHMARK BIN
    BIT_AND BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHARACTER_LENGTH CHARSET
    CHAR_LENGTH COALESCE COERCIBILITY COLLATION COMPRESS CONCAT CONCAT_WS CONNECTION_ID CONV
    CONVERT CONVERT_TZ COS COT COUNT CRC32 CUME_DIST CURDATE CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT
    DATE_SUB DAY DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR DEFAULT DEGREES DENSE_RANK ELT EXP
    EXPORT_SET EXTRACT EXTRACTVALUE FIELD FIND_IN_SET FIRST_VALUE FLOOR FORMAT FOUND_ROWS
    FROM_BASE64 FROM_DAYS FROM_UNIXTIME GET_FORMAT GET_LOCK GREATEST GROUP_CONCAT HEX HOUR
    IFNULL INET6_ATON INET6_NTOA INET_ATON INET_NTOA INSERT INSTR ISNULL IS_FREE_LOCK IS_IPV4
    IS_IPV6 IS_USED_LOCK JSON_ARRAY JSON_ARRAYAGG JSON_ARRAY_APPEND JSON_ARRAY_INSERT
    JSON_CONTAINS JSON_CONTAINS_PATH JSON_DEPTH JSON_EXTRACT JSON_INSERT JSON_KEYS JSON_LENGTH
    JSON_MERGE_PATCH JSON_MERGE_PRESERVE JSON_OBJECT JSON_OBJECTAGG JSON_QUOTE JSON_REMOVE
    JSON_REPLACE JSON_SEARCH JSON_SET JSON_TYPE JSON_UNQUOTE JSON_VALID LAG LAST_DAY
    LAST_INSERT_ID LAST_VALUE LCASE LEAD LEAST LENGTH LN LOAD_FILE LOCALTIME LOCALTIMESTAMP
    LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM MAKEDATE MAKETIME MAKE_SET MAX MD5 MICROSECOND MID
    MIN MINUTE MONTH MONTHNAME NAME_CONST NOW NTH_VALUE NTILE NULLIF OCT OCTET_LENGTH ORD
    PERCENT_RANK PERIOD_ADD PERIOD_DIFF PI POSITION POW POWER QUARTER QUOTE RADIANS RAND RANK
    REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR RELEASE_LOCK REPEAT REVERSE ROUND ROW_COUNT
    ROW_NUMBER RPAD RTRIM SCHEMA SECOND SEC_TO_TIME SESSION_USER SHA SHA1 SHA2 SIGN SIN SLEEP
    SOUNDEX SPACE SQRT STD STDDEV STDDEV_POP STDDEV_SAMP STRCMP STR_TO_DATE SUBDATE SUBSTR
    SUBSTRING SUBSTRING_INDEX SUBTIME SUM SYSDATE SYSTEM_USER TAN TIME TIMEDIFF TIMESTAMP
    TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_BASE64 TO_DAYS TO_SECONDS TRIM
    TRUNCATE UCASE UNCOMPRESS UNCOMPRESSED_LENGTH UNHEX UNIX_TIMESTAMP UPDATEXML UPPER USER
    UTC_DATE UTC_TIME UTC_TIMESTAMP UUID UUID_SHORT VARIANCE VAR_POP VAR_SAMP VERSION WEEK
    WEEKDAY WEEKOFYEAR WEIGHT_STRING YEAR YEARWEEK";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_have_no_name_twice() {
        for list in [SYNTAX, FUNCTIONS] {
            let names: Vec<&str> = list.split_ascii_whitespace().collect();
            assert!(names.len() > 40 && names.is_sorted_by(|one, other| one < other), "{names:?}");
        }
    }

    #[test]
    fn a_name_that_one_server_lacks_is_not_listed() {
        for name in ["uuid_to_bin", "add_months", "json_value", "nextval", "any_value", "datetime"]
        {
            assert!(!is_built_in(name, false), "{name}");
        }
        assert!(is_built_in("Count", false) && !is_built_in("Count", true));
        assert!(is_built_in("in", false) && is_built_in("in", true));
    }
}
