//! The constants of a statement as bytes.
//!
//! Patterns are saved as the text of a `LIKE`, and read from it again. Invariant: whole numbers are in ascending
//! order, since they are searched by halving. Not here: the conditions that name them.

use super::{InvalidReads, Rest, count};
use crate::compare::Constant;
use crate::condition::Operand;
use crate::pattern::Pattern;
use crate::schema::SqlColumnKind;

pub(super) fn write(out: &mut Vec<u8>, operand: &Operand) {
    match operand {
        Operand::One(constant) => {
            out.push(0);
            write_constant(out, constant);
        }
        Operand::Integers(integers) => {
            out.push(1);
            count(out, integers.len());
            integers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        }
        Operand::Constants(constants) => {
            out.push(2);
            count(out, constants.len());
            constants.iter().for_each(|constant| write_constant(out, constant));
        }
        Operand::Pattern(pattern) => {
            out.push(3);
            out.push(u8::from(pattern.is_case_sensitive()));
            write_text(out, pattern.text());
        }
    }
}

pub(super) fn read(rest: &mut Rest<'_>) -> Result<Operand, InvalidReads> {
    Ok(match rest.u8()? {
        0 => Operand::One(read_constant(rest)?),
        1 => {
            let integers = rest.many(|rest| rest.array().map(i64::from_le_bytes))?;
            if !integers.is_sorted_by(|one, next| one < next) {
                return Err(InvalidReads);
            }
            Operand::Integers(integers.into())
        }
        2 => Operand::Constants(rest.many(read_constant)?.into()),
        3 => {
            let kind = SqlColumnKind::Text { is_case_sensitive: rest.flag()? };
            Operand::Pattern(Pattern::of(kind, rest.text()?).ok_or(InvalidReads)?.into())
        }
        _ => return Err(InvalidReads),
    })
}

fn write_constant(out: &mut Vec<u8>, constant: &Constant) {
    match constant {
        Constant::Integer(number) => {
            out.push(0);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Constant::Number(number) => {
            out.push(1);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Constant::Moment(text) => {
            out.push(2);
            write_text(out, text);
        }
        Constant::Text { text, is_case_sensitive } => {
            out.push(if *is_case_sensitive { 4 } else { 3 });
            write_text(out, text);
        }
        Constant::Folded(text) => {
            out.push(5);
            write_text(out, text);
        }
        Constant::Bytes(text) => {
            out.push(6);
            write_text(out, text);
        }
    }
}

fn read_constant(rest: &mut Rest<'_>) -> Result<Constant, InvalidReads> {
    let kind = rest.u8()?;
    Ok(match kind {
        0 => Constant::Integer(rest.array().map(i64::from_le_bytes)?),
        1 => Constant::Number(rest.array().map(f64::from_le_bytes)?),
        2 => Constant::Moment(rest.text()?.into()),
        3 | 4 => Constant::Text { text: rest.text()?.into(), is_case_sensitive: kind == 4 },
        5 => Constant::Folded(rest.text()?.into()),
        6 => Constant::Bytes(rest.text()?.into()),
        _ => return Err(InvalidReads),
    })
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}
