package io.sparkevents.lineage;

import java.util.Map;

/** Tells which commit of a table of Delta is a writer's own, by what the commit says of itself. */
interface OwnCommit {
    /** Tells whether a commit may be the writer's: of several that may, none is. */
    boolean isOfKind(Map commit);

    /** Tells whether no other commit can be of this kind, so that none has to be looked for. */
    boolean isUnique();

    /** Tells whether the only commit that may be the writer's is consistent with what the writer has done. */
    boolean agrees(Map commit);
}
