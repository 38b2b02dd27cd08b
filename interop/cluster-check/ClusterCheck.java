import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * What `cluster` asks of Apache's Java client: a producer that never pauses and a group of two push consumers on a topic of
 * two brokers. Says `killing` and `starting` on standard output, and goes on when the script answers with a line.
 * Arguments: name servers, topic. Last line: N passed, N failed, N skipped.
 */
public class ClusterCheck {
    static final long DRAIN_MS = 30_000;
    static final String[] BROKERS = {"broker-a", "broker-b"};
    static final Map<String, String> acknowledged = new ConcurrentHashMap<>();
    static final Map<String, AtomicInteger> consumed = new ConcurrentHashMap<>();
    /** Failed sends, in words. */
    static final Queue<String> failures = new ConcurrentLinkedQueue<>();
    static int passed, failed;
    static volatile boolean stop;

    public static void main(String[] args) throws Exception {
        String names = args[0], topic = args[1];
        List<DefaultMQPushConsumer> members = List.of(consumer(names, topic, "member-0"), consumer(names, topic, "member-1"));
        DefaultMQProducer producer = new DefaultMQProducer("cluster-out");
        producer.setNamesrvAddr(names);
        producer.setInstanceName("sender");
        producer.setPollNameServerInterval(1_000);
        producer.setHeartbeatBrokerInterval(1_000);
        producer.start();

        check("group-spreads-over-both", 30_000, () -> sharedOut(members, topic, 8, 2));
        for (int n = 0; n < 200; n++) send(producer, topic, "first " + n);
        check("both-brokers-are-sent-to", 0, () -> on("broker-a") > 0 && on("broker-b") > 0);
        check("200-messages-are-consumed", DRAIN_MS, () -> consumed.size() == 200);
        check("each-of-them-once", 0, () -> consumed.values().stream().allMatch(times -> times.get() == 1));

        Thread sending = new Thread(() -> {
            for (int n = 0; !stop; n++) {
                send(producer, topic, "second " + n);
                sleep(5);
            }
        });
        sending.start();
        tell("killing");
        int before = on("broker-a");
        check("sends-go-on-without-one-of-each", DRAIN_MS, () -> on("broker-a") >= before + 200);
        check("the-survivors-backlog-is-drained", DRAIN_MS, () -> backlog("broker-a") == 0);
        check("its-queues-are-shared-out", DRAIN_MS, () -> sharedOut(members, topic, 4, 1));
        int back = on("broker-b");
        tell("starting");
        check("the-one-that-is-back-is-sent-to", 2 * DRAIN_MS, () -> on("broker-b") >= back + 50);
        check("all-queues-are-shared-out-again", DRAIN_MS, () -> sharedOut(members, topic, 8, 2));
        stop = true;
        sending.join();
        check("everything-acknowledged-is-consumed", DRAIN_MS, () -> backlog("broker-a") + backlog("broker-b") == 0);
        check("no-send-failed", 0, failures::isEmpty);
        failures.stream().limit(3).forEach(failure -> System.out.println("  " + failure));
        long again = consumed.values().stream().filter(times -> times.get() > 1).count();
        System.out.println(acknowledged.size() + " acknowledged, " + again + " of them consumed more than once");
        producer.shutdown();
        members.forEach(DefaultMQPushConsumer::shutdown);
        System.out.println(passed + " passed, " + failed + " failed, 0 skipped");
        System.exit(failed == 0 ? 0 : 1);
    }

    static DefaultMQPushConsumer consumer(String names, String topic, String instance) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("cluster-in");
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(instance);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPollNameServerInterval(1_000);
        consumer.setHeartbeatBrokerInterval(1_000);
        consumer.setPersistConsumerOffsetInterval(500);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                consumed.computeIfAbsent(new String(message.getBody()), body -> new AtomicInteger()).incrementAndGet();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    static void send(DefaultMQProducer producer, String topic, String body) {
        try {
            SendResult sent = producer.send(new Message(topic, body.getBytes()));
            acknowledged.put(body, sent.getMessageQueue().getBrokerName());
        } catch (Exception e) {
            failures.add(body + ": " + e);
        }
    }

    static int on(String broker) {
        return (int) acknowledged.values().stream().filter(broker::equals).count();
    }

    static long backlog(String broker) {
        return acknowledged.entrySet().stream()
            .filter(sent -> sent.getValue().equals(broker) && !consumed.containsKey(sent.getKey())).count();
    }

    /** Whether the members have `queues` queues on `brokers` brokers between them, each some and none twice. */
    static boolean sharedOut(List<DefaultMQPushConsumer> members, String topic, int queues, int brokers) {
        Set<String> all = new TreeSet<>();
        Set<String> names = new HashSet<>();
        int sum = 0;
        for (DefaultMQPushConsumer member : members) {
            Set<String> share = new TreeSet<>();
            member.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet().stream()
                .filter(queue -> queue.getTopic().equals(topic))
                .forEach(queue -> {
                    share.add(queue.getBrokerName() + ":" + queue.getQueueId());
                    names.add(queue.getBrokerName());
                });
            if (share.isEmpty()) return false;
            sum += share.size();
            all.addAll(share);
        }
        return sum == queues && all.size() == queues && names.size() == brokers;
    }

    /** One line a case. */
    static void check(String name, long limitMs, BooleanSupplier done) {
        long began = System.currentTimeMillis();
        boolean ok = done.getAsBoolean();
        while (!ok && System.currentTimeMillis() - began < limitMs) {
            sleep(10);
            ok = done.getAsBoolean();
        }
        String seconds = String.format("%.1fs", (System.currentTimeMillis() - began) / 1000.0);
        System.out.printf("%s cluster.%-40s %6s%s%n", ok ? "PASS" : "FAIL", name, seconds, ok ? "" : "  " + state());
        if (ok) passed++;
        else failed++;
    }

    static String state() {
        Map<String, String> state = new TreeMap<>();
        for (String broker : BROKERS) state.put(broker, on(broker) + " acknowledged, backlog " + backlog(broker));
        return state + ", failed sends: " + failures.size();
    }

    /** Asks the script for something, and waits until it is done. */
    static void tell(String what) throws Exception {
        System.out.println(what);
        if (System.in.read() < 0) throw new IllegalStateException("the script is gone");
        while (System.in.available() > 0) System.in.read();
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
