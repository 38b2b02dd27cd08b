//! scratch
use cometmq_client::*;
use std::collections::HashMap;
use std::time::Duration;
#[tokio::main]
async fn main() -> Result<(), Error> {
    let began = std::time::Instant::now();
    let ns = std::env::var("NAMESRV_ADDR").unwrap();
    let client = Client::start(ClientOptions::new(&ns)?).await?;
    let admin = Admin::new(&client);
    let run = std::process::id();
    let topic = format!("tour_{run}");
    let group = format!("tourg_{run}");
    let addr = admin.masters(None).await?.remove(0);
    admin.create_topic(&addr, &TopicConfig::new(&topic, 8, 6)).await?;
    eprintln!("config {:?}", admin.topic_config(&addr, &topic).await?);
    let producer = Producer::builder(&client, "tourp").start().await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let q = producer.queues(&topic).await?;
    assert_eq!(q.len(), 8);
    let big = vec![b'z'; 3_000_000];
    let r = producer.send_to(Message::new(&topic, big.clone()).tags("big"), &q[3]).await?;
    eprintln!("{r:?}");
    let puller = Puller::new(&client, "pullg")?;
    let p = puller.pull(&q[3], 0, 32, Some(Duration::from_secs(1)), &SubExpression::All).await?;
    assert_eq!(p.messages[0].body()?.as_ref(), &big[..]);
    eprintln!(
        "sysflag {:x} {:?} {} {} {}",
        p.messages[0].sys_flag, p.status, p.next_offset, p.min_offset, p.max_offset
    );
    eprintln!("props {:?}", p.messages[0].properties().collect::<Vec<_>>());
    let b = producer.send_batch((0..5).map(|i| Message::new(&topic, format!("b{i}")).tags("B")).collect()).await?;
    eprintln!("{b:?}");
    producer.send_oneway(Message::new(&topic, "ow").tags("OW")).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut total = 0;
    for q in &q {
        total += admin.max_offset(q).await?;
        assert_eq!(admin.min_offset(q).await?, 0);
    }
    assert_eq!(total, 7);
    assert_eq!(admin.query_consumer_offset(&group, &q[0]).await?, None);
    eprintln!("search {}", admin.search_offset(&q[3], 0).await?);
    let np = puller.pull(&q[3], 1, 32, Some(Duration::from_millis(500)), &SubExpression::All).await?;
    eprintln!("{np:?}");
    let ill = puller.pull(&q[3], 100, 32, None, &SubExpression::All).await?;
    eprintln!("{ill:?}");
    // LAST
    let mut last =
        Consumer::builder(&client, &group).subscribe(&topic, SubExpression::Tags("L".into())).start().await?;
    assert!(Consumer::builder(&client, &group).subscribe(&topic, SubExpression::All).start().await.is_err());
    while last.assigned().len() < 8 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    producer.send(Message::new(&topic, "no").tags("N")).await?;
    let t = std::time::Instant::now();
    producer.send(Message::new(&topic, "l1").tags("L")).await?;
    let m = last.recv().await.unwrap();
    eprintln!("last got {:?} in {:?} assigned {}", m.body()?, t.elapsed(), last.assigned().len());
    assert_eq!(m.body()?.as_ref(), b"l1");
    // second member
    let client2 = Client::start(ClientOptions::new(&ns)?).await?;
    let t = std::time::Instant::now();
    let second = Consumer::builder(&client2, &group).subscribe(&topic, SubExpression::Tags("L".into())).start().await?;
    while last.assigned().len() != 5 && second.assigned().len() != 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    eprintln!("at {:?}", began.elapsed());
    eprintln!("rebalanced in {:?}: {} {}", t.elapsed(), last.assigned().len(), second.assigned().len());
    let mut h = HashMap::new();
    let mut second = second;
    for i in 0..2000 {
        producer.send(Message::new(&topic, format!("m{i}")).tags("L")).await?;
    }
    loop {
        tokio::select! {
            m = last.recv() => { *h.entry(m.unwrap().body()?.clone()).or_insert(0) += 1; }
            m = second.recv() => { *h.entry(m.unwrap().body()?.clone()).or_insert(0) += 1; }
            _ = tokio::time::sleep(Duration::from_secs(1)) => break,
        }
    }
    eprintln!("at {:?}", began.elapsed());
    eprintln!("200: {} max {:?}", h.len(), h.values().max());
    let t = std::time::Instant::now();
    second.shutdown().await;
    eprintln!("second shutdown {:?}", t.elapsed());
    let t = std::time::Instant::now();
    while last.assigned().len() < 9 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if t.elapsed() > Duration::from_secs(5) {
            break;
        }
    }
    eprintln!("took over in {:?} {}", t.elapsed(), last.assigned().len());
    last.shutdown().await;
    let mut lag = 0;
    for q in &q {
        let c = admin.query_consumer_offset(&group, q).await?;
        let m = admin.max_offset(q).await?;
        lag += m - c.unwrap_or(-1000);
    }
    eprintln!("lag {lag}");
    // throughput
    let t = std::time::Instant::now();
    let mut set = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (p, topic) = (producer.clone(), topic.clone());
        set.spawn(async move {
            for _ in 0..300 {
                p.send(Message::new(&topic, vec![b'x'; 1000])).await.unwrap();
            }
        });
    }
    while let Some(r) = set.join_next().await {
        r.unwrap();
    }
    eprintln!("{} msg/s", 64.0 * 300.0 / t.elapsed().as_secs_f64());
    let t = std::time::Instant::now();
    let mut all = Consumer::builder(&client, &format!("{group}2"))
        .subscribe(&topic, SubExpression::All)
        .from(StartFrom::First)
        .start()
        .await?;
    let mut n = 0;
    while let Ok(Some(_)) = tokio::time::timeout(Duration::from_secs(2), all.recv()).await {
        n += 1;
        if n == 21209 {
            break;
        }
    }
    eprintln!("consumed {n} in {:?}", t.elapsed());
    if std::env::args().len() > 1 {
        eprintln!("restart the broker now");
        let (p2, t2) = (producer.clone(), topic.clone());
        tokio::spawn(async move {
            for i in 0..60 {
                let t = std::time::Instant::now();
                let r = p2.send(Message::new(&t2, if i > 40 { "end".to_string() } else { format!("tick{i}") })).await;
                eprintln!("tick{i} {:?} {:?}", r.map(|r| r.queue_offset).map_err(|e| e.to_string()), t.elapsed());
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        loop {
            match tokio::time::timeout(Duration::from_secs(20), all.recv()).await {
                Ok(Some(m)) => {
                    eprintln!("{:?}", m.body());
                }
                _ => {
                    eprintln!("nothing");
                    break;
                }
            }
        }
    }
    all.shutdown().await;
    admin.delete_group(&addr, &group, true).await?;
    admin.delete_topic("DefaultCluster", &topic).await?;
    assert!(matches!(admin.route(&topic).await, Err(Error::NoRoute { .. })));
    let t = std::time::Instant::now();
    client2.shutdown().await;
    producer.shutdown().await;
    client.shutdown().await;
    eprintln!("shutdown {:?}", t.elapsed());
    Ok(())
}
