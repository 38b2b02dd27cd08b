import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.security.MessageDigest;
import java.util.function.BooleanSupplier;

import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.admin.TopicOffset;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * One life of a store directory that `store` hands from one broker to the other. Reads every message of every topic, and
 * compares with the books of the lives before; then writes messages of every kind, and notes what it was told.
 *
 * Books, in the folder given: `messages` (every message seen at the end of the last life, a line each), `offsets` (group,
 * topic, queue, offset), `keys` (topic, key, number of messages), `ids` (topic, offset message id, unique key).
 * Arguments: name server, broker, number of the life, books, messages to send, `queries` or `no-queries`.
 */
public class StoreCheck {
    static final String BROKER_NAME = "broker-a";
    static final int QUEUES = 20;
    static String names, broker, life;
    static Path books;
    static int passed, failed;
    static DefaultMQAdminExt admin;
    static DefaultMQPullConsumer reader;
    static DefaultMQProducer producer;

    public static void main(String[] args) {
        try {
            live(args);
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    static void live(String[] args) throws Exception {
        names = args[0];
        broker = args[1];
        life = args[2];
        books = Path.of(args[3]);
        int count = Integer.parseInt(args[4]);
        boolean queries = args[5].equals("queries");
        admin = new DefaultMQAdminExt(20_000);
        admin.setNamesrvAddr(names);
        admin.setInstanceName("admin-" + life);
        admin.start();
        reader = new DefaultMQPullConsumer("store-readers");
        reader.setNamesrvAddr(names);
        reader.setInstanceName("reader-" + life);
        reader.start();
        producer = new DefaultMQProducer("store-out");
        producer.setNamesrvAddr(names);
        producer.setInstanceName("sender-" + life);
        producer.setSendMsgTimeout(10_000);
        producer.start();

        Set<String> before = dump();
        check("every-message-of-the-lives-before", missing("messages", before));
        check("committed-offsets", offsets());
        if (queries) {
            check("queries-by-key", keys());
            check("queries-by-unique-key-and-id", ids());
        }
        if (life.equals("1")) check("a-timer-message", timer());
        if (life.equals("5")) check("the-timer-message-of-the-first-life", delivered());
        TreeSet<String> acknowledged = write(count);
        Set<String> after = dump();
        check("everything-acknowledged", where(acknowledged, after));
        check("nothing-is-gone", minus(before, after));
        Files.write(books.resolve("messages"), after);
        System.out.println(after.size() + " messages at the end of life " + life);
        System.out.println(passed + " passed, " + failed + " failed, 0 skipped");
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Every message of every topic, with all its values. */
    static Set<String> dump() throws Exception {
        TreeSet<String> lines = new TreeSet<>();
        for (String topic : admin.fetchAllTopicList().getTopicList()) {
            if (topic.startsWith("%RETRY%store-readers")) continue;
            Map<MessageQueue, TopicOffset> queues;
            try {
                queues = admin.examineTopicStats(broker, topic).getOffsetTable();
            } catch (Exception e) {
                continue; // one that only the name server knows
            }
            for (Map.Entry<MessageQueue, TopicOffset> queue : queues.entrySet()) {
                for (long at = queue.getValue().getMinOffset(); at < queue.getValue().getMaxOffset(); ) {
                    PullResult got = reader.pull(queue.getKey(), "*", at, 32, 10_000);
                    if (got.getPullStatus() != PullStatus.FOUND) {
                        throw new IllegalStateException(queue.getKey() + " at " + at + ": " + got);
                    }
                    for (MessageExt message : got.getMsgFoundList()) {
                        if (message.getQueueOffset() != at++) throw new IllegalStateException(queue.getKey() + " has a hole at " + (at - 1));
                        lines.add(line(message));
                    }
                }
            }
        }
        return lines;
    }

    static String line(MessageExt m) throws Exception {
        Map<String, String> properties = new TreeMap<>(m.getProperties());
        properties.remove("MIN_OFFSET");
        properties.remove("MAX_OFFSET");
        String body = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-1").digest(m.getBody()));
        return String.join("\t", place(m.getTopic(), m.getQueueId(), m.getQueueOffset()), m.getMsgId(), "" + m.getStoreSize(),
            "" + m.getCommitLogOffset(), "" + m.getBornTimestamp(), "" + m.getStoreTimestamp(), "" + m.getBornHost(), "" + m.getStoreHost(),
            "" + m.getSysFlag(), "" + m.getFlag(), "" + m.getReconsumeTimes(), "" + m.getPreparedTransactionOffset(), body,
            properties.toString().replace('\n', ' '));
    }

    static String place(String topic, int queue, long offset) {
        return topic + "\t" + queue + "\t" + offset;
    }

    static String missing(String book, Set<String> found) throws Exception {
        Path path = books.resolve(book);
        return Files.exists(path) ? minus(new TreeSet<>(Files.readAllLines(path)), found) : "";
    }

    /** What of `wanted` is not in `found`, in words; empty = nothing. */
    static String minus(Set<String> wanted, Set<String> found) {
        List<String> gone = new ArrayList<>();
        for (String line : wanted) if (!found.contains(line)) gone.add(line);
        if (gone.isEmpty()) return "";
        String place = gone.get(0).replaceAll("^([^\t]*\t[^\t]*\t[^\t]*).*", "$1\t");
        String there = found.stream().filter(line -> line.startsWith(place)).findFirst().orElse("nothing");
        return gone.size() + " of " + wanted.size() + " are not there, first " + gone.get(0) + " but " + there;
    }

    /** `wanted`: place and unique key. */
    static String where(Set<String> wanted, Set<String> found) {
        Set<String> there = new TreeSet<>();
        for (String line : found) {
            String[] fields = line.split("\t");
            there.add(place(fields[0], Integer.parseInt(fields[1]), Long.parseLong(fields[2])) + "\t" + fields[3]);
        }
        return minus(wanted, there);
    }

    static String offsets() throws Exception {
        Map<String, DefaultMQPullConsumer> members = new TreeMap<>();
        String wrong = "";
        for (String line : book("offsets")) {
            String[] f = line.split("\t");
            DefaultMQPullConsumer member = members.get(f[0]);
            if (member == null) {
                member = new DefaultMQPullConsumer(f[0]);
                member.setNamesrvAddr(names);
                member.setInstanceName("offsets-" + life + f[0]);
                member.start();
                members.put(f[0], member);
            }
            long offset = member.fetchConsumeOffset(new MessageQueue(f[1], BROKER_NAME, Integer.parseInt(f[2])), true);
            if (offset != Long.parseLong(f[3])) wrong = line + " but " + offset;
        }
        members.values().forEach(DefaultMQPullConsumer::shutdown);
        return wrong;
    }

    static String keys() throws Exception {
        for (String line : book("keys")) {
            String[] f = line.split("\t");
            int found = admin.queryMessage(f[0], f[1], 64, 0, Long.MAX_VALUE).getMessageList().size();
            if (found != Integer.parseInt(f[2])) return line + " but " + found;
        }
        return "";
    }

    static String ids() throws Exception {
        for (String line : book("ids")) {
            String[] f = line.split("\t");
            for (String id : List.of(f[1], f[2])) {
                MessageExt message = admin.viewMessage(f[0], id);
                if (!message.getProperties().get("UNIQ_KEY").equals(f[2])) return line + ": " + id + " is " + message;
            }
        }
        return "";
    }

    static String timer() throws Exception {
        Message message = new Message("timed", "of the first life".getBytes());
        message.setDelayTimeMs(20_000);
        producer.send(message);
        return "";
    }

    static String delivered() {
        BooleanSupplier there = () -> {
            try {
                return dump().stream().anyMatch(line -> line.startsWith("timed\t"));
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
        for (int n = 0; n < 100 && !there.getAsBoolean(); n++) sleep(300);
        return there.getAsBoolean() ? "" : "it never came";
    }

    static List<String> book(String name) throws Exception {
        Path path = books.resolve(name);
        return Files.exists(path) ? Files.readAllLines(path) : List.of();
    }

    static void note(String name, List<String> lines) throws Exception {
        List<String> all = new ArrayList<>(book(name));
        all.addAll(lines);
        Files.write(books.resolve(name), all);
    }

    /** Messages of every kind; returns place and unique key of what was acknowledged. */
    static TreeSet<String> write(int count) throws Exception {
        String topic = "life-" + life, group = "group-" + life;
        admin.createAndUpdateTopicConfig(broker, config(topic));
        SubscriptionGroupConfig groups = new SubscriptionGroupConfig();
        groups.setGroupName(group);
        admin.createAndUpdateSubscriptionGroupConfig(broker, groups);
        TreeSet<String> acknowledged = new TreeSet<>();
        List<String> errors = new ArrayList<>(), ids = new ArrayList<>();
        for (int n = 0; n < 100 && producer.fetchPublishMessageQueues(topic).size() < QUEUES; n++) sleep(100);
        java.util.concurrent.Semaphore window = new java.util.concurrent.Semaphore(64);
        for (int n = 0; n < count; n++) {
            if (n % 4 == 0) {
                List<Message> batch = new ArrayList<>();
                for (int i = 0; i < 8; i++) batch.add(message(topic, n + "-" + i, 200));
                MessageQueue queue = new MessageQueue(topic, BROKER_NAME, n % QUEUES);
                SendResult sent = producer.send(batch, queue);
                String[] unique = sent.getMsgId().split(",");
                for (int i = 0; i < unique.length; i++) acknowledged.add(place(topic, n % QUEUES, sent.getQueueOffset() + i) + "\t" + unique[i]);
                continue;
            }
            Message message = message(topic, "" + n, n % 50 == 1 ? 10_000 : 300);
            int at = n;
            window.acquire();
            producer.send(message, new MessageQueue(topic, BROKER_NAME, n % QUEUES), new SendCallback() {
                public void onSuccess(SendResult sent) {
                    synchronized (acknowledged) {
                        acknowledged.add(place(topic, sent.getMessageQueue().getQueueId(), sent.getQueueOffset()) + "\t" + sent.getMsgId());
                        if (at % 200 == 3) ids.add(topic + "\t" + sent.getOffsetMsgId() + "\t" + sent.getMsgId());
                    }
                    window.release();
                }

                public void onException(Throwable e) {
                    synchronized (acknowledged) { errors.add(e.toString()); }
                    window.release();
                }
            });
        }
        window.acquire(64);
        if (!errors.isEmpty()) throw new IllegalStateException(errors.size() + " sends failed: " + errors.get(0));
        for (int level : new int[] {1, 18}) {
            Message delayed = message(topic, "delayed " + level, 100);
            delayed.setDelayTimeLevel(level);
            producer.send(delayed);
        }
        giveBack(topic, group);
        List<String> keys = new ArrayList<>();
        for (int n : new int[] {1, 2, 3, count - 1}) if (n % 4 != 0) keys.add(topic + "\tkey-" + n + "\t1");
        keys.add(topic + "\tshared-" + life + "\t20");
        note("keys", keys);
        note("ids", ids);
        // Those of level 1 come within a second or two; what is pending is delivered in a later life.
        sleep(2_500);
        return acknowledged;
    }

    static Message message(String topic, String n, int size) {
        byte[] body = (life + "/" + n + "/" + "0123456789".repeat(size / 10)).getBytes(StandardCharsets.UTF_8);
        Message message = new Message(topic, "tag" + n.length(), "key-" + n, body);
        if (n.matches("\\d{1,3}") && Integer.parseInt(n) < 27 && Integer.parseInt(n) % 4 != 0) message.setKeys("key-" + n + " shared-" + life);
        message.putUserProperty("n", n);
        message.putUserProperty("umlaut", "\u00e4\u7ec4");
        return message;
    }

    /** Two messages go back for a retry; then the group commits. */
    static void giveBack(String topic, String group) throws Exception {
        DefaultMQPullConsumer member = new DefaultMQPullConsumer(group);
        member.setNamesrvAddr(names);
        member.setInstanceName("member-" + life);
        member.start();
        MessageQueue queue = new MessageQueue(topic, BROKER_NAME, 1);
        PullResult got = member.pull(queue, "*", 0, 2, 10_000);
        for (MessageExt message : got.getMsgFoundList()) member.sendMessageBack(message, 1, BROKER_NAME);
        List<String> offsets = new ArrayList<>();
        for (int q = 0; q < QUEUES; q++) {
            admin.updateConsumeOffset(broker, group, new MessageQueue(topic, BROKER_NAME, q), 10 + q);
            offsets.add(group + "\t" + topic + "\t" + q + "\t" + (10 + q));
        }
        note("offsets", offsets);
        member.shutdown();
    }

    static TopicConfig config(String topic) {
        return new TopicConfig(topic, QUEUES, QUEUES, 6);
    }

    static void check(String name, String wrong) {
        boolean ok = wrong.isEmpty();
        System.out.printf("%s store.life-%s.%-40s%s%n", ok ? "PASS" : "FAIL", life, name, ok ? "" : "  " + wrong);
        if (ok) passed++;
        else failed++;
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
