package io.sparkevents;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonStreamContext;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import java.io.IOException;
import java.io.StringWriter;

/**
 * Bounds a record, however long an exception, a description or a plan is: long texts are cut in the middle, because
 * the root cause of a Java exception comes last. The event-log source cuts texts in the same way (long_texts.py).
 */
public class RecordTexts {
    private static final int LONGEST = 65536;
    private static final int LONGEST_OF_HUGE = 1024;
    private static final int MOST_ITEMS_OF_HUGE = 100;

    private final JsonFactory factory;
    private final int longest;
    private final long huge;

    /** Takes what the queue may hold, in bytes: one record shall not fill it. */
    public RecordTexts(long maxBytes) {
        // Jackson reads no longer texts than 20 million characters, unless it is told to.
        StreamReadConstraints any = StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build();
        factory = JsonFactory.builder().streamReadConstraints(any).build();
        longest = (int) Math.min(LONGEST, maxBytes / 16);
        huge = maxBytes / 2;
    }

    /** Returns a record with texts of bounded length; a record with very many parts also loses most of them. */
    public String bounded(String json) throws IOException {
        String cut = json.length() <= longest ? json : copy(json, longest, Integer.MAX_VALUE);
        return cut.length() <= huge ? cut : copy(cut, LONGEST_OF_HUGE, MOST_ITEMS_OF_HUGE);
    }

    /** Returns at most so many characters of a text, three quarters of them from its beginning. */
    public static String cut(String text, int longest) {
        int count = text.length() <= longest ? 0 : text.codePointCount(0, text.length());
        if (count <= longest) {
            return text;
        }
        int head = longest / 4 * 3;
        int tail = text.offsetByCodePoints(text.length(), head - longest);
        return text.substring(0, text.offsetByCodePoints(0, head))
            + "\u2026 (" + (count - longest) + " characters left out) \u2026" + text.substring(tail);
    }

    private String copy(String json, int longestText, int mostItems) throws IOException {
        StringWriter written = new StringWriter();
        JsonParser from = factory.createParser(json);
        JsonGenerator to = factory.createGenerator(written);
        for (JsonToken token = from.nextToken(); token != null; token = from.nextToken()) {
            JsonStreamContext context = from.getParsingContext();
            JsonStreamContext around = token.isStructStart() ? context.getParent() : context;
            if (around.inArray() && around.getCurrentIndex() >= mostItems && !token.isStructEnd()) {
                from.skipChildren();
            } else if (token == JsonToken.FIELD_NAME) {
                to.writeFieldName(cut(from.getCurrentName(), longestText));
            } else if (token == JsonToken.VALUE_STRING) {
                to.writeString(cut(from.getText(), longestText));
            } else {
                to.copyCurrentEvent(from);
            }
        }
        to.close();
        return written.toString();
    }
}
