//! Which queues a member of a group takes. Every member computes the same answer from the same two sorted lists.
//! Java: `AllocateMessageQueueAveragely`.

use cometmq_wire::body::MessageQueue;

/// The member's share: a run of the sorted queues, as even as it goes, the first members taking one more. `None` = the
/// member is not in the list.
pub fn averagely<'q>(queues: &'q [MessageQueue], members: &[String], member: &str) -> Option<&'q [MessageQueue]> {
    let index = members.iter().position(|m| m == member)?;
    let (share, rest) = (queues.len() / members.len(), queues.len() % members.len());
    let start = index * share + index.min(rest);
    let len = share + usize::from(index < rest);
    queues.get(start..start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(queues: usize, members: usize) -> Vec<Vec<i32>> {
        let queue = |queue_id| MessageQueue { broker_name: "b".into(), queue_id, topic: "t".into() };
        let queues: Vec<_> = (0..queues as i32).map(queue).collect();
        let members: Vec<_> = (0..members).map(|m| format!("c{m}")).collect();
        let share = |m: &String| averagely(&queues, &members, m).unwrap().iter().map(|q| q.queue_id).collect();
        members.iter().map(share).collect()
    }

    #[test]
    fn shares_are_javas() {
        assert_eq!(shares(4, 1), [vec![0, 1, 2, 3]]);
        assert_eq!(shares(8, 3), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]);
        assert_eq!(shares(10, 4), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7], vec![8, 9]]);
        assert_eq!(shares(2, 4), [vec![0], vec![1], vec![], vec![]]);
        assert_eq!(shares(0, 2), [Vec::<i32>::new(), vec![]]);
    }

    #[test]
    fn every_queue_has_one_owner() {
        for (queues, members) in (0..20).flat_map(|q| (1..9).map(move |m| (q, m))) {
            let all: Vec<i32> = shares(queues, members).concat();
            assert_eq!(all, (0..queues as i32).collect::<Vec<_>>(), "{queues} queues, {members} members");
        }
    }

    #[test]
    fn a_stranger_gets_no_share() {
        assert!(averagely(&[], &[], "c").is_none());
        assert!(averagely(&[], &["d".into()], "c").is_none());
    }
}
