// Golden.java OUTDIR: writes the golden files beside it from the classes of Apache RocketMQ 5.5.0; see README.md for how to run it.
// Everything is fixed (opaques, times, addresses), so that a second run writes the same bytes; only the lines of ids.txt
// whose facts hold "now_ms" differ, since Java reads a time from an id relative to the current month.

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter.Feature;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.InflaterInputStream;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.common.sysflag.MessageSysFlag;
import org.apache.rocketmq.remoting.CommandCustomHeader;
import org.apache.rocketmq.remoting.protocol.*;
import org.apache.rocketmq.remoting.protocol.admin.*;
import org.apache.rocketmq.remoting.protocol.body.*;
import org.apache.rocketmq.remoting.protocol.filter.FilterAPI;
import org.apache.rocketmq.remoting.protocol.header.*;
import org.apache.rocketmq.remoting.protocol.header.namesrv.GetRouteInfoRequestHeader;
import org.apache.rocketmq.remoting.protocol.heartbeat.*;
import org.apache.rocketmq.remoting.protocol.route.*;
import org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingInfo;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.MessageExtEncoder;
import org.apache.rocketmq.store.PutMessageContext;
import org.apache.rocketmq.store.config.MessageStoreConfig;

public class Golden {
    static final long T0 = 1_750_000_000_000L;      // 2025-06-15T15:06:40Z
    static final String PROPS = "KEYS\u0001订单-1 ключ\u0002TAGS\u0001TagA\u0002emoji\u0001a\uD83D\uDE80b\u0002UNIQ_KEY\u00017F0000010001070DEA4E0123456789AB\u0002WAIT\u0001true";
    static final Map<String, List<String>> FILES = new LinkedHashMap<>();

    public static void main(String[] a) throws Exception {
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, Integer.toString(MQVersion.CURRENT_VERSION));
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        frames();
        records();
        bodies();
        properties();
        ids();
        hashes();
        Path out = Path.of(a[0]);
        for (Map.Entry<String, List<String>> f : FILES.entrySet()) {
            Files.write(out.resolve(f.getKey()), f.getValue(), StandardCharsets.UTF_8);
        }
        System.exit(0);
    }

    static void line(String file, String name, String data, Object facts) {
        if (name.matches("(?s).*[\t\n\r].*") || data.matches("(?s).*[\t\n\r].*")) throw new IllegalArgumentException(name);
        FILES.computeIfAbsent(file, k -> new ArrayList<>()).add(name + "\t" + data + "\t" + JSON.toJSONString(facts, Feature.WriteMapNullValue));
    }

    static String hex(byte[] b) { return HexFormat.of().formatHex(b); }
    static byte[] utf8(String s) { return s.getBytes(StandardCharsets.UTF_8); }
    static Map<String, Object> map(Object... kv) {
        Map<String, Object> m = new LinkedHashMap<>();
        for (int i = 0; i < kv.length; i += 2) m.put((String) kv[i], kv[i + 1]);
        return m;
    }

    // ---- frames

    static void frames() throws Exception {
        SendMessageRequestHeader v1 = new SendMessageRequestHeader();
        v1.setProducerGroup("golden-producer");
        v1.setTopic("golden-topic");
        v1.setDefaultTopic("TBW102");
        v1.setDefaultTopicQueueNums(4);
        v1.setQueueId(3);
        v1.setSysFlag(0);
        v1.setBornTimestamp(T0);
        v1.setFlag(7);
        v1.setProperties(PROPS);
        v1.setReconsumeTimes(0);
        v1.setUnitMode(false);
        v1.setMaxReconsumeTimes(16);
        v1.setBatch(false);
        v1.setBrokerName("broker-a");
        request("send-v1", RequestCode.SEND_MESSAGE, 1, v1, utf8("body of v1"));
        request("send-v2", RequestCode.SEND_MESSAGE_V2, 2, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(v1), utf8("body of v2: é 中 \uD83D\uDE80"));

        SendMessageRequestHeader least = new SendMessageRequestHeader();
        least.setProducerGroup("p");
        least.setTopic("t");
        least.setDefaultTopic("TBW102");
        least.setDefaultTopicQueueNums(8);
        least.setQueueId(-1);
        least.setSysFlag(0);
        least.setBornTimestamp(0L);
        least.setFlag(0);
        request("send-v2-required-fields-only", RequestCode.SEND_MESSAGE_V2, 3, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(least), new byte[] {0});

        v1.setBatch(true);
        v1.setProperties("WAIT\u0001true");
        v1.setFlag(0);
        request("send-batch", RequestCode.SEND_BATCH_MESSAGE, 4, SendMessageRequestHeaderV2.createSendMessageRequestHeaderV2(v1), MessageDecoder.encodeMessages(batch()));

        SendMessageResponseHeader sent = new SendMessageResponseHeader();
        sent.setMsgId("7F00000100002A9F00000000000004D2");
        sent.setQueueId(3);
        sent.setQueueOffset(9_007_199_254_740_993L);
        response("send-ok", ResponseCode.SUCCESS, 2, null, sent, null);
        sent.setTransactionId("7F0000010001070DEA4E0123456789AB");
        response("send-ok-with-transaction", ResponseCode.SUCCESS, 5, null, sent, null);
        response("send-flush-timeout", ResponseCode.FLUSH_DISK_TIMEOUT, 6, null, sent, null);

        PullMessageRequestHeader pull = new PullMessageRequestHeader();
        pull.setConsumerGroup("golden-group");
        pull.setTopic("golden-topic");
        pull.setQueueId(1);
        pull.setQueueOffset(42L);
        pull.setMaxMsgNums(32);
        pull.setSysFlag(7);
        pull.setCommitOffset(40L);
        pull.setSuspendTimeoutMillis(15000L);
        pull.setSubVersion(T0);
        request("pull-stored-subscription", RequestCode.PULL_MESSAGE, 7, pull, null);
        pull.setSubscription("TagA || TagB");
        pull.setExpressionType("TAG");
        pull.setMaxMsgBytes(Integer.MAX_VALUE);
        pull.setRequestSource(0);
        pull.setBrokerName("broker-a");
        request("pull-tags", RequestCode.PULL_MESSAGE, 8, pull, null);
        pull.setSubscription("a > 5 AND b = 'x\"y'");
        pull.setExpressionType("SQL92");
        request("pull-sql", RequestCode.PULL_MESSAGE, 9, pull, null);

        PullMessageResponseHeader pulled = new PullMessageResponseHeader();
        pulled.setSuggestWhichBrokerId(0L);
        pulled.setNextBeginOffset(44L);
        pulled.setMinOffset(0L);
        pulled.setMaxOffset(44L);
        pulled.setTopicSysFlag(0);
        pulled.setGroupSysFlag(0);
        byte[] one = MessageDecoder.encode(stored(message("golden-topic", "first", PROPS), 42, 1000), false);
        byte[] two = MessageDecoder.encode(stored(message("golden-topic", "second", "TAGS\u0001TagB"), 43, 1000 + one.length), false);
        response("pull-found", ResponseCode.SUCCESS, 8, "FOUND", pulled, ByteBuffer.allocate(one.length + two.length).put(one).put(two).array());
        response("pull-not-found", ResponseCode.PULL_NOT_FOUND, 9, "NO_MESSAGE_IN_QUEUE", pulled, null);
        response("pull-offset-moved", ResponseCode.PULL_OFFSET_MOVED, 10, "OFFSET_OVERFLOW_BADLY", pulled, null);

        UpdateConsumerOffsetRequestHeader commit = new UpdateConsumerOffsetRequestHeader();
        commit.setConsumerGroup("golden-group");
        commit.setTopic("golden-topic");
        commit.setQueueId(1);
        commit.setCommitOffset(44L);
        RemotingCommand oneway = RemotingCommand.createRequestCommand(RequestCode.UPDATE_CONSUMER_OFFSET, commit);
        oneway.markOnewayRPC();
        frame("commit-oneway", 11, oneway, null);

        request("heartbeat", RequestCode.HEART_BEAT, 12, null, heartbeat().encode());
        GetRouteInfoRequestHeader route = new GetRouteInfoRequestHeader();
        route.setTopic("golden-topic");
        request("route", RequestCode.GET_ROUTEINFO_BY_TOPIC, 13, route, null);
        route.setAcceptStandardJsonOnly(true);
        request("route-standard-json", RequestCode.GET_ROUTEINFO_BY_TOPIC, 14, route, null);
        response("route-found", ResponseCode.SUCCESS, 13, null, null, route().encode());
        response("route-missing", ResponseCode.TOPIC_NOT_EXIST, 14, "No topic route info in name server for the topic: golden-topic", null, null);

        response("remark-unicode", ResponseCode.SYSTEM_ERROR, 15, "Fehler: ü 中 \uD83D\uDE80 \"quoted\" \\ \n\t\u0001 </script>", null, null);
        response("remark-empty", ResponseCode.SUCCESS, 16, "", null, null);
        response("bare", ResponseCode.SUCCESS, 17, null, null, null);
        response("opaque-negative", ResponseCode.SUCCESS, -5, null, null, null);
        response("opaque-max", ResponseCode.SUCCESS, Integer.MAX_VALUE, null, null, null);
        for (LanguageCode l : LanguageCode.values()) {
            RemotingCommand c = RemotingCommand.createRequestCommand(RequestCode.GET_BROKER_CONFIG, null);
            c.setLanguage(l);
            frame("language-" + l.name().toLowerCase(Locale.ROOT), 100 + (l.getCode() & 0xff), c, null);
        }
        RemotingCommand odd = RemotingCommand.createRequestCommand(RequestCode.UPDATE_BROKER_CONFIG, null);
        odd.addExtField("empty", "");
        odd.addExtField("ключ", "значение \uD83D\uDE80");
        odd.addExtField("control", "\u0001\u0002\u001f\u007f\u0080\u2028");
        odd.addExtField("quote", "\"\\/'<>&");
        odd.addExtField("number", "9223372036854775807");
        frame("ext-fields-odd", 18, odd, null);
    }

    static void request(String name, int code, int opaque, CommandCustomHeader h, byte[] body) throws Exception {
        frame(name, opaque, RemotingCommand.createRequestCommand(code, h), body);
    }

    static void response(String name, int code, int opaque, String remark, CommandCustomHeader h, byte[] body) throws Exception {
        RemotingCommand c = RemotingCommand.createResponseCommandWithHeader(code, h);
        c.setRemark(remark);
        frame(name, opaque, c, body);
    }

    /** Three lines: JSON, ROCKETMQ as the netty encoder writes it, and ROCKETMQ by encode() where that differs (order of the fields). */
    static void frame(String name, int opaque, RemotingCommand c, byte[] body) throws Exception {
        c.setOpaque(opaque);
        c.setBody(body);
        HashMap<String, String> own = c.getExtFields() == null ? null : new HashMap<>(c.getExtFields());
        byte[] fast = null;
        for (SerializeType t : SerializeType.values()) {
            c.setExtFields(own == null ? null : new HashMap<>(own));
            c.setSerializeTypeCurrentRPC(t);
            ByteBuf out = Unpooled.buffer();
            c.fastEncodeHeader(out);
            if (body != null) out.writeBytes(body);
            fast = new byte[out.readableBytes()];
            out.readBytes(fast);
            frameLine(name + (t == SerializeType.JSON ? ".json" : ".binary"), fast);
        }
        c.setExtFields(own == null ? null : new HashMap<>(own));
        byte[] plain = c.encode().array();
        if (!Arrays.equals(plain, fast)) frameLine(name + ".binary-map-order", plain);
    }

    static void frameLine(String name, byte[] f) throws Exception {
        RemotingCommand d = RemotingCommand.decode(ByteBuffer.wrap(f, 4, f.length - 4).slice());
        line("frames.hex", name, hex(f), map("serialize", d.getSerializeTypeCurrentRPC().name(), "code", d.getCode(), "language", d.getLanguage().name(),
            "version", d.getVersion(), "opaque", d.getOpaque(), "flag", d.getFlag(), "response", d.isResponseType(), "oneway", d.isOnewayRPC(), "remark", d.getRemark(),
            "extFields", d.getExtFields() == null ? null : new TreeMap<>(d.getExtFields()), "body", d.getBody() == null ? null : hex(d.getBody())));
    }

    static List<Message> batch() {
        List<Message> l = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Message m = new Message("golden-topic", "Tag" + i, "key-" + i, utf8("batch body " + i));
            m.setFlag(i);
            if (i == 2) m.putUserProperty("name", "值");
            l.add(m);
        }
        return l;
    }

    // ---- commit log records

    static MessageExtBrokerInner message(String topic, String body, String props) {
        MessageExtBrokerInner m = new MessageExtBrokerInner();
        m.setTopic(topic);
        m.setBody(body == null ? null : utf8(body));
        m.setPropertiesString(props);
        MessageAccessor.setProperties(m, props == null ? new HashMap<>() : MessageDecoder.string2messageProperties(props));
        m.setQueueId(3);
        m.setFlag(7);
        m.setBornTimestamp(T0);
        m.setStoreTimestamp(T0 + 5);
        m.setBornHost(address("192.0.2.10", 54321));
        m.setStoreHost(address("192.0.2.20", 10911));
        return m;
    }

    static MessageExtBrokerInner stored(MessageExtBrokerInner m, long queueOffset, long at) {
        m.setQueueOffset(queueOffset);
        m.setCommitLogOffset(at);
        m.setBodyCRC(m.getBody() == null ? 0 : UtilAll.crc32(m.getBody()));
        return m;
    }

    static SocketAddress address(String ip, int port) {
        try {
            return new InetSocketAddress(InetAddress.getByName(ip), port);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static void records() throws Exception {
        record("plain", message("golden-topic", "hello", PROPS + "\u0002"));
        record("properties-without-last-separator", message("golden-topic", "hello", PROPS));
        record("properties-null", message("golden-topic", "hello", null));
        record("properties-empty", message("golden-topic", "hello", ""));
        record("topic-127", message("t".repeat(127), "hello", "TAGS\u0001TagA\u0002"));
        record("topic-128", message("t".repeat(128), "hello", "TAGS\u0001TagA\u0002"));
        record("topic-200", message("t".repeat(200), "hello", PROPS + "\u0002"));
        record("body-of-zeros", message("golden-topic", "\0\0\0\0", "TAGS\u0001\u0002"));
        record("body-null", message("golden-topic", null, "TAGS\u0001TagA\u0002"));
        MessageExtBrokerInner m = message("golden-topic", "born by v6", "TAGS\u0001TagA\u0002");
        m.setBornHost(address("2001:db8::10", 54321));
        m.setBornHostV6Flag();
        record("v6-born", m);
        m = message("golden-topic", "stored by v6", "TAGS\u0001TagA\u0002");
        m.setStoreHost(address("2001:db8::20", 10911));
        m.setStoreHostAddressV6Flag();
        record("v6-store", m);
        m = message("t".repeat(200), "both v6", PROPS + "\u0002");
        m.setBornHost(address("2001:db8::10", 65535));
        m.setBornHostV6Flag();
        m.setStoreHost(address("fe80::1", 1));
        m.setStoreHostAddressV6Flag();
        record("v6-both-topic-200", m);
        m = message("golden-topic", "half", "TRAN_MSG\u0001true\u0002PGROUP\u0001golden-producer\u0002");
        m.setSysFlag(MessageSysFlag.TRANSACTION_PREPARED_TYPE);
        record("transaction-prepared", m);
        m = message("golden-topic", "committed", "TRAN_MSG\u0001true\u0002");
        m.setSysFlag(MessageSysFlag.TRANSACTION_COMMIT_TYPE);
        m.setPreparedTransactionOffset(123_456_789_012L);
        record("transaction-commit", m);
        m = message("%RETRY%golden-group", "again", "RETRY_TOPIC\u0001golden-topic\u0002ORIGIN_MESSAGE_ID\u00017F00000100002A9F00000000000004D2\u0002");
        m.setReconsumeTimes(3);
        record("reconsumed", m);
        m = message("golden-topic", "negative", "TAGS\u0001TagA\u0002");
        m.setFlag(-1);
        m.setQueueId(-1);
        record("negative-flag-and-queue", m);
        for (CompressionType t : CompressionType.values()) {
            m = message("golden-topic", "compressed ".repeat(40), "TAGS\u0001TagA\u0002");
            m.setBody(CompressorFactory.getCompressor(t).compress(m.getBody(), 5));
            m.setSysFlag(MessageSysFlag.COMPRESSED_FLAG | t.getCompressionFlag());
            record("compressed-" + t.name().toLowerCase(Locale.ROOT), m);
        }
        m = message("golden-topic", "compressed, no type in the flag (old clients)", "TAGS\u0001TagA\u0002");
        m.setBody(UtilAll.compress(m.getBody(), 5));
        m.setSysFlag(MessageSysFlag.COMPRESSED_FLAG);
        record("compressed-untyped", m);
        record("crc-property", message("golden-topic", "hello", PROPS), true);
        record("crc-property-alone", message("golden-topic", "hello", null), true);

        m = stored(message("golden-topic", "by MessageDecoder.encode", PROPS), 5, 4096);
        recordLine("decoder-encode", MessageDecoder.encode(m, false));

        for (boolean crc : new boolean[] {false, true}) {
            MessageExtBatch b = new MessageExtBatch();
            b.setTopic("golden-topic");
            b.setBody(MessageDecoder.encodeMessages(batch()));
            b.setQueueId(2);
            b.setBornTimestamp(T0);
            b.setStoreTimestamp(T0 + 5);
            b.setBornHost(address("192.0.2.10", 54321));
            b.setStoreHost(address("192.0.2.20", 10911));
            MessageStoreConfig config = new MessageStoreConfig();
            config.setEnabledAppendPropCRC(crc);
            ByteBuffer all = new MessageExtEncoder(config).encode(b, new PutMessageContext("golden-topic-2"));
            // CommitLog.doAppend fills in the two offsets and the checksum of each
            for (int i = 0; all.hasRemaining(); i++) {
                byte[] one = new byte[all.getInt(all.position())];
                int at = all.position();
                all.get(one);
                recordLine("batch-" + i + (crc ? "-crc-property" : ""), fill(one, 42 + i, 4096 + at, crc));
            }
        }
    }

    static void record(String name, MessageExtBrokerInner m) throws Exception {
        record(name, m, false);
    }

    static void record(String name, MessageExtBrokerInner m, boolean crc) throws Exception {
        stored(m, 42, 0x1122334455L);
        m.setVersion(utf8(m.getTopic()).length > Byte.MAX_VALUE ? MessageVersion.MESSAGE_VERSION_V2 : MessageVersion.MESSAGE_VERSION_V1);
        MessageStoreConfig config = new MessageStoreConfig();
        config.setEnabledAppendPropCRC(crc);
        MessageExtEncoder e = new MessageExtEncoder(config);
        if (e.encode(m) != null) throw new IllegalStateException(name);
        ByteBuffer b = e.getEncoderBuffer();
        byte[] one = new byte[b.getInt(0)];
        b.get(one);
        recordLine(name, fill(one, 42, 0x1122334455L, crc));
    }

    /** What CommitLog does with an encoded record when its place is known. */
    static byte[] fill(byte[] record, long queueOffset, long at, boolean crc) {
        ByteBuffer b = ByteBuffer.wrap(record);
        b.putLong(20, queueOffset);
        b.putLong(28, at);
        if (crc) {
            b.limit(record.length - CommitLog.CRC32_RESERVED_LEN);
            int sum = UtilAll.crc32(b);
            b.limit(record.length).position(record.length - CommitLog.CRC32_RESERVED_LEN);
            MessageDecoder.createCrc32(b, sum);
        }
        return record;
    }

    static void recordLine(String name, byte[] r) throws Exception {
        MessageExt m = MessageDecoder.decode(ByteBuffer.wrap(r), true, true, false, true);
        MessageExt raw = MessageDecoder.decode(ByteBuffer.wrap(r), true, false);
        Map<String, String> decoded = MessageDecoder.decodeProperties(ByteBuffer.wrap(r));
        line("records.hex", name, hex(r), map("storeSize", m.getStoreSize(), "magic", ByteBuffer.wrap(r).getInt(4), "bodyCRC", m.getBodyCRC(), "queueId", m.getQueueId(),
            "flag", m.getFlag(), "queueOffset", m.getQueueOffset(), "commitLogOffset", m.getCommitLogOffset(), "storedSysFlag", raw.getSysFlag(), "sysFlag", m.getSysFlag(), "bornTimestamp", m.getBornTimestamp(),
            "bornHost", host(m.getBornHost()), "storeTimestamp", m.getStoreTimestamp(), "storeHost", host(m.getStoreHost()), "reconsumeTimes", m.getReconsumeTimes(),
            "preparedTransactionOffset", m.getPreparedTransactionOffset(), "topic", m.getTopic(), "msgId", m.getMsgId(), "tags", m.getTags(), "keys", m.getKeys(),
            "properties", decoded == null ? null : new TreeMap<>(decoded), "storedBody", raw.getBody() == null ? null : hex(raw.getBody()), "body", m.getBody() == null ? null : hex(m.getBody())));
    }

    static Map<String, Object> host(SocketAddress s) {
        InetSocketAddress i = (InetSocketAddress) s;
        return map("ip", i.getAddress().getHostAddress(), "port", i.getPort());
    }

    // ---- bodies

    static DataVersion version(long counter) {
        DataVersion v = new DataVersion();
        v.setStateVersion(0);
        v.setTimestamp(T0);
        v.setCounter(new AtomicLong(counter));
        return v;
    }

    static TopicRouteData route() {
        TopicRouteData r = new TopicRouteData();
        for (String name : List.of("broker-a", "broker-b")) {
            QueueData q = new QueueData();
            q.setBrokerName(name);
            q.setReadQueueNums(8);
            q.setWriteQueueNums(4);
            q.setPerm(6);
            q.setTopicSysFlag(0);
            r.getQueueDatas().add(q);
        }
        r.getBrokerDatas().add(new BrokerData("DefaultCluster", "broker-a", new HashMap<>(Map.of(0L, "192.0.2.20:10911", 1L, "192.0.2.21:10911"))));
        r.getBrokerDatas().add(new BrokerData("DefaultCluster", "broker-b", new HashMap<>(Map.of(0L, "[2001:db8::20]:10911")), true, "zone-1"));
        return r;
    }

    static SubscriptionData subscription(String topic, String expression) {
        try {
            SubscriptionData s = FilterAPI.buildSubscriptionData(topic, expression);
            s.setSubVersion(T0);
            return s;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static HeartbeatData heartbeat() {
        HeartbeatData h = new HeartbeatData();
        h.setClientID("192.0.2.10@4242");
        ProducerData p = new ProducerData();
        p.setGroupName("golden-producer");
        h.getProducerDataSet().add(p);
        ConsumerData c = new ConsumerData();
        c.setGroupName("golden-group");
        c.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        c.setMessageModel(MessageModel.CLUSTERING);
        c.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET);
        // a LinkedHashSet: the order of a HashSet of these changes from JVM to JVM
        c.setSubscriptionDataSet(new LinkedHashSet<>(List.of(subscription("golden-topic", "TagA || TagB"), subscription("%RETRY%golden-group", "*"))));
        c.setUnitMode(false);
        h.getConsumerDataSet().add(c);
        return h;
    }

    static TopicConfig topic(String name, int read, int write, int perm) {
        TopicConfig t = new TopicConfig(name, read, write, perm);
        t.setOrder(name.endsWith("ordered"));
        if (name.endsWith("fifo")) t.setAttributes(new HashMap<>(Map.of("message.type", "FIFO")));
        return t;
    }

    static TopicQueueMappingInfo mapping() {
        TopicQueueMappingInfo i = new TopicQueueMappingInfo("golden-static", 4, "broker-a", T0);
        i.setCurrIdMap(new ConcurrentHashMap<>(Map.of(0, 0, 1, 1)));
        return i;
    }

    static void bodies() throws Exception {
        TopicRouteData r = route();
        body("route", r);
        line("bodies.txt", "route.standard", new String(r.encode(Feature.BrowserCompatible, Feature.MapSortField), StandardCharsets.UTF_8), facts(r));
        r.setOrderTopicConf("broker-a:4;broker-b:4");
        r.getFilterServerTable().put("192.0.2.20:10911", List.of("192.0.2.30:1234"));
        r.setTopicQueueMappingByBroker(new HashMap<>(Map.of("broker-a", mapping())));
        body("route-everything", r);
        line("bodies.txt", "route-everything.standard", new String(r.encode(Feature.BrowserCompatible, Feature.MapSortField), StandardCharsets.UTF_8), facts(r));
        body("route-empty", new TopicRouteData());

        body("heartbeat", heartbeat());
        HeartbeatData none = heartbeat();
        none.setConsumerDataSet(new HashSet<>());
        none.setHeartbeatFingerprint(-123456);
        none.setWithoutSub(true);
        body("heartbeat-without-subscriptions", none);

        TopicConfigAndMappingSerializeWrapper topics = new TopicConfigAndMappingSerializeWrapper();
        ConcurrentMap<String, TopicConfig> table = topics.getTopicConfigTable();
        for (TopicConfig t : List.of(topic("golden-topic", 8, 4, 6), topic("golden-ordered", 4, 4, 6), topic("golden-fifo", 4, 4, 6), topic("%RETRY%golden-group", 1, 1, 6), topic("golden-readonly", 1, 0, 4))) table.put(t.getTopicName(), t);
        topics.setDataVersion(version(5));
        topics.setMappingDataVersion(version(0));
        RegisterBrokerBody register = new RegisterBrokerBody();
        register.setTopicConfigSerializeWrapper(topics);
        register.setFilterServerList(new ArrayList<>(List.of("192.0.2.30:1234")));
        body("register-broker", register);
        topics.setTopicQueueMappingInfoMap(new ConcurrentHashMap<>(Map.of("golden-static", mapping())));
        body("register-broker-with-mapping", register);
        byte[] deflated = register.encode(true);
        byte[] inflated = new InflaterInputStream(new java.io.ByteArrayInputStream(deflated)).readAllBytes();
        RegisterBrokerBody back = RegisterBrokerBody.decode(deflated, true, MQVersion.Version.values()[MQVersion.CURRENT_VERSION]);
        back.getTopicConfigSerializeWrapper().setMappingDataVersion(null);   // not carried, so it reads as "now"
        line("bodies.hex", "register-broker-compressed", hex(deflated), facts(back));
        line("bodies.hex", "register-broker-inflated", hex(inflated), facts(back));

        TopicConfigSerializeWrapper persisted = new TopicConfigSerializeWrapper();
        persisted.setTopicConfigTable(table);
        persisted.setDataVersion(version(5));
        body("topic-config", persisted);
        line("bodies.hex", "topics.json", hex(utf8(persisted.toJson(true))), facts(persisted));
        SubscriptionGroupWrapper groups = new SubscriptionGroupWrapper();
        SubscriptionGroupConfig g = new SubscriptionGroupConfig();
        g.setGroupName("golden-group");
        groups.setSubscriptionGroupTable(new ConcurrentHashMap<>(Map.of("golden-group", g)));
        groups.setDataVersion(version(1));
        body("subscription-groups", groups);
        line("bodies.hex", "subscription-groups.pretty", hex(utf8(groups.toJson(true))), facts(groups));
        body("subscription-group-config", g);
        ConsumerOffsetManager offsets = new ConsumerOffsetManager();
        offsets.setOffsetTable(new ConcurrentHashMap<>(Map.of("golden-topic@golden-group", new ConcurrentHashMap<>(Map.of(0, 17L, 1, 9_007_199_254_740_993L, 10, 0L)))));
        offsets.setDataVersion(version(3));
        line("bodies.hex", "consumerOffset.json", hex(utf8(offsets.encode(true))), map("dataVersion", offsets.getDataVersion(), "offsetTable", plain(offsets.getOffsetTable())));
        line("bodies.txt", "consumer-offsets", offsets.encode(false), map("dataVersion", offsets.getDataVersion(), "offsetTable", plain(offsets.getOffsetTable())));

        ClusterInfo cluster = new ClusterInfo();
        Map<String, BrokerData> brokers = new TreeMap<>();
        for (BrokerData b : route().getBrokerDatas()) brokers.put(b.getBrokerName(), b);
        cluster.setBrokerAddrTable(brokers);
        cluster.setClusterAddrTable(new TreeMap<>(Map.of("DefaultCluster", new TreeSet<>(brokers.keySet()))));
        body("cluster-info", cluster);

        ConsumerConnection consumers = new ConsumerConnection();
        Connection c = new Connection();
        c.setClientId("192.0.2.10@4242");
        c.setClientAddr("192.0.2.10:54321");
        c.setLanguage(LanguageCode.JAVA);
        c.setVersion(MQVersion.CURRENT_VERSION);
        consumers.getConnectionSet().add(c);
        consumers.getSubscriptionTable().put("golden-topic", subscription("golden-topic", "TagA || TagB"));
        consumers.setConsumeType(ConsumeType.CONSUME_PASSIVELY);
        consumers.setMessageModel(MessageModel.CLUSTERING);
        consumers.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        body("consumer-connection", consumers);
        ProducerConnection producers = new ProducerConnection();
        producers.getConnectionSet().add(c);
        body("producer-connection", producers);
        GetConsumerListByGroupResponseBody ids = new GetConsumerListByGroupResponseBody();
        ids.setConsumerIdList(List.of("192.0.2.10@4242", "192.0.2.11@17"));
        body("consumer-list", ids);

        MessageQueue q0 = new MessageQueue("golden-topic", "broker-a", 0), q1 = new MessageQueue("golden-topic", "broker-a", 1);
        LockBatchRequestBody lock = new LockBatchRequestBody();
        lock.setConsumerGroup("golden-group");
        lock.setClientId("192.0.2.10@4242");
        lock.setMqSet(new LinkedHashSet<>(List.of(q0, q1)));
        body("lock-batch-request", lock);
        LockBatchResponseBody locked = new LockBatchResponseBody();
        locked.setLockOKMQSet(new LinkedHashSet<>(List.of(q0, q1)));
        body("lock-batch-response", locked);
        TopicList list = new TopicList();
        list.setTopicList(new TreeSet<>(List.of("golden-topic", "golden-ordered")));
        list.setBrokerAddr("192.0.2.20:10911");
        body("topic-list", list);

        // maps whose keys are objects: what the admin tool reads is not JSON either
        TopicStatsTable stats = new TopicStatsTable();
        TopicOffset o = new TopicOffset();
        o.setMinOffset(0);
        o.setMaxOffset(44);
        o.setLastUpdateTimestamp(T0);
        stats.setOffsetTable(new ConcurrentHashMap<>(Map.of(q0, o)));
        line("bodies.txt", "topic-stats", new String(stats.encode(), StandardCharsets.UTF_8), map("class", "TopicStatsTable", "queue", q0, "offset", o, "topicPutTps", stats.getTopicPutTps()));
        ConsumeStats consumed = new ConsumeStats();
        OffsetWrapper w = new OffsetWrapper();
        w.setBrokerOffset(44);
        w.setConsumerOffset(40);
        w.setPullOffset(42);
        w.setLastTimestamp(T0);
        consumed.setOffsetTable(new ConcurrentHashMap<>(Map.of(q1, w)));
        consumed.setConsumeTps(1.5);
        line("bodies.txt", "consume-stats", new String(consumed.encode(), StandardCharsets.UTF_8), map("class", "ConsumeStats", "queue", q1, "offset", w, "consumeTps", 1.5));
    }

    static void body(String name, RemotingSerializable o) {
        line("bodies.txt", name, new String(o.encode(), StandardCharsets.UTF_8), facts(o));
    }

    static void body(String name, Object o) {
        line("bodies.txt", name, new String(RemotingSerializable.encode(o), StandardCharsets.UTF_8), facts(o));
    }

    /** The same as strict JSON with string keys, sorted. */
    static Object facts(Object o) {
        return map("class", o.getClass().getSimpleName(), "value", plain(o));
    }

    static Object plain(Object o) {
        return JSON.parse(JSON.toJSONString(o, Feature.WriteNonStringKeyAsString, Feature.MapSortField));
    }

    // ---- properties strings

    static void properties() {
        Map<String, String> several = new TreeMap<>(Map.of("KEYS", "k1 k2", "TAGS", "TagA", "a", "1", "ключ", "значение \uD83D\uDE80"));
        String[] in = {"", "TAGS\u0001TagA", "TAGS\u0001TagA\u0002", MessageDecoder.messageProperties2String(several), "a\u00011\u0002b\u00012", "a\u00011\u0002a\u00012\u0002",
            "empty\u0001\u0002b\u00012\u0002", "\u0001novalue\u0002b\u00012\u0002", "noseparator\u0002b\u00012\u0002", "\u0002\u0002b\u00012\u0002", "a\u0001x\u0001y\u0002b\u00012",
            "a\u00011", "a\u0001", "ab", "k\u0001v\u0002 spaced \u0001 value \u0002", "k\u0001\u0001\u0002"};
        for (int i = 0; i < in.length; i++) {
            Map<String, String> m = MessageDecoder.string2messageProperties(in[i]);
            line("properties.hex", "read-" + i, hex(utf8(in[i])), new TreeMap<>(m));
        }
        line("properties.hex", "written", hex(utf8(MessageDecoder.messageProperties2String(several))), several);
        Map<String, String> odd = new TreeMap<>();
        odd.put("empty", "");
        odd.put("null", null);
        odd.put("x", "1");
        line("properties.hex", "written-odd", hex(utf8(MessageDecoder.messageProperties2String(odd))), odd);
    }

    // ---- ids

    static void ids() throws Exception {
        for (long offset : new long[] {0, 1234, 0x1122334455667788L, Long.MAX_VALUE}) {
            for (String ip : List.of("127.0.0.1", "192.0.2.20", "255.255.255.255", "2001:db8::20", "::1")) {
                String id = MessageDecoder.createMessageId(address(ip, 10911), offset);
                MessageId back = MessageDecoder.decodeMessageId(id);
                line("ids.txt", "offset-id " + ip + " " + offset, id, map("kind", "offset", "host", host(back.getAddress()), "offset", back.getOffset()));
            }
        }
        String wide = MessageDecoder.createMessageId(address("192.0.2.20", 65535), 7);
        line("ids.txt", "offset-id port 65535", wide, map("kind", "offset", "host", host(MessageDecoder.decodeMessageId(wide).getAddress()), "offset", 7));
        // Unique ids: ip, pid, hash of the class loader, ms since the start of the month, counter. The first three would be this
        // machine's, so the ids are put together here and read by Java.
        String machine = "C000020A" + "1092" + "070DEA4E";
        for (String id : List.of(machine + "00000000" + "0000", machine + "05265C00" + "0001", machine + "7FFFFFFF" + "FFFF",
            "20010DB8000000000000000000000020" + "FFFF" + "070DEA4E" + "0A4CB800" + "8000")) {
            Calendar month = Calendar.getInstance();
            long now = month.getTimeInMillis();
            long at = MessageClientIDSetter.getNearlyTimeFromID(id).getTime();
            line("ids.txt", "uniq-id", id, map("kind", "uniq", "ip", MessageClientIDSetter.getIPStrFromID(id), "pid", MessageClientIDSetter.getPidFromID(id),
                "since_month_ms", Long.parseLong(id.substring(id.length() - 12, id.length() - 4), 16), "counter", Integer.parseInt(id.substring(id.length() - 4), 16), "now_ms", now, "nearly_time_ms", at));
        }
    }

    // ---- hashes

    static void hashes() {
        List<String> tags = new ArrayList<>(List.of("", "*", "a", "TagA", "TagB", "Aa", "BB", "AaAa", "BBBB", "AaBB", "中文", "Ünï", "\uD83D\uDE80", "x\uD83D\uDE80y\uD834\uDD1E", "\uFFFF\u0800\u07FF", "polygenelubricants", "t".repeat(200)));
        for (String t : tags) {
            line("hashes.txt", "string", t, map("hash", t.hashCode(), "utf16", t.length()));
        }
        for (String t : List.of("", "a", "123456789", "hello", "中文\uD83D\uDE80", "0".repeat(1000))) {
            java.util.zip.CRC32 full = new java.util.zip.CRC32();
            full.update(utf8(t));
            line("hashes.txt", "crc32", t, map("crc", UtilAll.crc32(utf8(t)), "unmasked", full.getValue()));
        }
        // the same as bytes, whose CRC has the highest bit set
        for (int i = 0; i < 4; i++) {
            byte[] b = new byte[64 << i];
            for (int k = 0; k < b.length; k++) b[k] = (byte) (k * 37 + i);
            line("hashes.txt", "crc32-bytes", hex(b), map("crc", UtilAll.crc32(b)));
        }
    }
}
