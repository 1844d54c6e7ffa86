//! Whether a user is alone in a group: many systems give each user such a group, and let it write to all of the user's
//! files.

use std::fs;

/// Whether only the user and root are in this group according to /etc/group and /etc/passwd. A group missing there may
/// have any members.
pub fn is_of_user_alone(group: u32, user: u32) -> bool {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    is_alone(&text("/etc/group"), &text("/etc/passwd"), group, user)
}

fn is_alone(groups: &str, users: &str, group: u32, user: u32) -> bool {
    let is = |field: Option<&str>, number: u32| field.and_then(|text| text.parse().ok()) == Some(number);
    let mut of_group = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let Some(found) = of_group.find(|fields| is(fields.get(2).copied(), group)) else { return false };
    let mut known = false;
    let trusted: Vec<&str> = users
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let is_trusted = is(fields.get(2).copied(), user) || is(fields.get(2).copied(), 0);
            known |= is(fields.get(2).copied(), user);
            is_trusted.then_some(fields[0])
        })
        .collect();
    let members = found.get(3).unwrap_or(&"").split(',').filter(|name| !name.is_empty());
    let strangers = users.lines().any(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        is(fields.get(3).copied(), group) && !trusted.contains(&fields[0])
    });
    known && !strangers && members.into_iter().all(|name| trusted.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_ones_own_has_nobody_else_in_it() {
        let groups = "root:x:0:\nstaff:x:50:\nadm:x:4:eve\nalice:x:1000:\nshared:x:70:alice\nusers:x:100:\n";
        let users =
            "root:x:0:0::/root:\nalice:x:1000:1000::/home/alice:\neve:x:1001:100::/home/eve:\nmallory:x:1002:100:::\n";
        let is = |group, user| is_alone(groups, users, group, user);
        assert!(is(1000, 1000) && is(50, 1000) && is(70, 1000) && is(0, 1000));
        assert!(!is(4, 1000) && !is(100, 1001) && !is(70, 1001) && !is(999, 1000));
        assert!(!is(1000, 7777), "nobody knows who this user is");
    }
}
