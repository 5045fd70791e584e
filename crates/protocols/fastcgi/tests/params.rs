//! The start of a request: the division of pairs into records, and refused pairs. FastCGI §3.4, §5.1, §5.2; the
//! limits are those of php-fpm. Not here: random pairs and splits, which are in `properties.rs`.

use bytes::Bytes;
use fastcgi::params::PAIR_BYTES_MAX;
use fastcgi::record::{HEADER_LEN, RecordHeader, RecordType};
use fastcgi::{AfterRequest, Params, ParamsLimits, ParamsRefused, pairs};

/// Splits bytes into records; padding is dropped.
fn records(bytes: &[u8]) -> Vec<(RecordHeader, Bytes)> {
    let mut bytes = Bytes::copy_from_slice(bytes);
    let mut records = Vec::new();
    while let Some(header) = RecordHeader::peek(&bytes) {
        let content_end = HEADER_LEN + usize::from(header.content_len);
        records.push((header, bytes.slice(HEADER_LEN..content_end)));
        bytes = bytes.slice(content_end + usize::from(header.padding_len)..);
    }
    assert!(bytes.is_empty());
    records
}

fn start(params: &Params, after: AfterRequest) -> Vec<u8> {
    params.clone().into_request_start(after)
}

#[test]
fn the_bytes_of_a_small_request() {
    let mut params = Params::default();
    params.push("A", "bc").unwrap();
    assert_eq!(
        start(&params, AfterRequest::KeepOpen)[..],
        *b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0\x01\x04\0\x01\0\x05\x03\0\x01\x02Abc\0\0\0\x01\x04\0\x01\0\0\0\0"
    );
    assert_eq!(start(&params, AfterRequest::Close)[10], 0, "no FCGI_KEEP_CONN");
}

#[test]
fn without_params_the_stream_is_just_its_end() {
    let kinds: Vec<u8> = records(&start(&Params::default(), AfterRequest::Close))
        .iter()
        .map(|(header, _)| header.type_number)
        .collect();
    assert_eq!(kinds, [RecordType::BeginRequest as u8, RecordType::Params as u8]);
}

#[test]
fn two_hundred_kilobytes_go_in_records_of_whole_pairs() {
    let mut params = Params::default();
    let mut sent = Vec::new();
    for number in 0..4 {
        let pair = (format!("HTTP_X_BIG_{number}"), vec![b'v'; 50_000]);
        params.push(&pair.0, &pair.1).unwrap();
        sent.push(pair);
    }
    let out = start(&params, AfterRequest::Close);
    let records = records(&out);
    assert_eq!(records.len(), 1 + 4 + 1);
    let mut found = Vec::new();
    for (_, content) in &records[1..] {
        for (name, value) in pairs::decode_all(content.clone()).expect("whole pairs only") {
            found.push((String::from_utf8(name.to_vec()).unwrap(), value.to_vec()));
        }
    }
    assert_eq!(found, sent);
}

#[test]
fn the_longest_pair_fits_and_one_byte_more_does_not() {
    let limits = ParamsLimits { total_bytes: usize::MAX, pair_bytes: usize::MAX };
    let mut params = Params::new(limits);
    // The length of the name takes one byte, that of the value four.
    let value = vec![b'v'; PAIR_BYTES_MAX - 1 - 4 - 1];
    params.push("N", &value).unwrap();
    params.push("N", &value).unwrap();
    let bytes = PAIR_BYTES_MAX + 1;
    let refused = params.push("NN", &value).unwrap_err();
    assert_eq!(refused, ParamsRefused::PairTooLarge { name: "NN".into(), bytes });
    assert_eq!(refused.as_str(), "param-too-large");
    assert_eq!(params.total_bytes(), 2 * PAIR_BYTES_MAX);
    for (header, _) in records(&start(&params, AfterRequest::Close)) {
        let with_padding = usize::from(header.content_len) + usize::from(header.padding_len);
        assert!(with_padding <= 65_535, "php-fpm closes on more");
    }
}

#[test]
fn a_record_is_filled_to_the_last_byte_that_php_fpm_takes() {
    for (value_len, expected) in [(25, 1), (26, 2)] {
        let mut params = Params::default();
        params.push("N", vec![b'v'; PAIR_BYTES_MAX - 6]).unwrap();
        params.push("N", vec![b'v'; value_len]).unwrap();
        let records = records(&start(&params, AfterRequest::Close));
        let filled = records.iter().filter(|(_, content)| content.len() > 8).count();
        assert_eq!(filled, expected, "{} bytes of pairs", params.total_bytes());
    }
}

#[test]
fn the_total_is_bounded_and_a_refused_pair_leaves_no_trace() {
    let mut params = Params::new(ParamsLimits { total_bytes: 10, pair_bytes: 100 });
    params.push("A", "bcd").unwrap();
    let before = start(&params, AfterRequest::Close);
    assert_eq!(params.push("E", "fgh"), Err(ParamsRefused::TotalTooLarge { limit: 10 }));
    assert_eq!(start(&params, AfterRequest::Close), before);
    params.push("E", "f").unwrap();
    assert_eq!(params.total_bytes(), 10);
}

#[test]
fn invalid_environment_variables_are_refused() {
    let mut params = Params::default();
    assert_eq!(params.push("", "v"), Err(ParamsRefused::NameInvalid));
    assert_eq!(params.push("A=B", "v"), Err(ParamsRefused::NameInvalid));
    assert_eq!(params.push("A\0", "v"), Err(ParamsRefused::NameInvalid));
    assert_eq!(
        params.push("SCRIPT_FILENAME", "/srv/upload.jpg\0.php"),
        Err(ParamsRefused::ValueHasNul { name: "SCRIPT_FILENAME".into() })
    );
    assert_eq!(params.total_bytes(), 0);
}

#[test]
fn the_last_value_of_a_name_counts() {
    let mut params = Params::default();
    params.push("A", "1").unwrap();
    params.push("B", "").unwrap();
    params.push("A", "2").unwrap();
    assert_eq!(params.get(b"A").as_deref(), Some(&b"2"[..]));
    assert_eq!(params.get(b"B").as_deref(), Some(&b""[..]));
    assert_eq!(params.get(b"C"), None);
    assert_eq!(params.to_pairs().len(), 3);
}
