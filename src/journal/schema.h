/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_JOURNAL_SCHEMA_H
#define STET_JOURNAL_SCHEMA_H

/* "stet" in ASCII, in the database header: file(1) and we know it by this. */
#define JOURNAL_APPLICATION_ID 0x73746574

/*
 * Step n brings format n to format n + 1, so a new journal runs them all and an old one
 * those it lacks. A step that was ever released is never edited.
 *
 * Paths, names and argv are bytes, hence BLOB. States are rows, not a CHECK: a new
 * state is then an INSERT, where a CHECK would mean rebuilding the table.
 */
static const char *const journal_steps[] = {
	/* 0 -> 1 */
	"CREATE TABLE meta(\n"
	"	key TEXT PRIMARY KEY NOT NULL,\n"
	"	value INTEGER NOT NULL\n"
	") STRICT, WITHOUT ROWID;\n"
	"INSERT INTO meta VALUES('checkpoints', 0);\n"

	"CREATE TABLE state(\n"
	"	name TEXT PRIMARY KEY NOT NULL\n"
	") STRICT, WITHOUT ROWID;\n"
	"INSERT INTO state VALUES('open'), ('active'), ('frozen'), ('rolled-back'),\n"
	"	('pruned'), ('committing'), ('committed'), ('undoing');\n"

	"CREATE TABLE txn(\n"
	"	id INTEGER PRIMARY KEY AUTOINCREMENT CHECK(id > 0),\n"
	"	name BLOB CHECK(length(name) > 0),\n"
	"	state TEXT NOT NULL REFERENCES state(name),\n"
	"	workspace BLOB NOT NULL,\n"
	"	dir BLOB,\n"
	"	argv BLOB NOT NULL,\n"
	"	options TEXT,\n"
	"	begin_ns INTEGER NOT NULL,\n"
	"	end_ns INTEGER NOT NULL DEFAULT 0,\n"
	"	exit_status INTEGER NOT NULL DEFAULT -1,\n"
	"	reason TEXT,\n"
	"	hidden BLOB NOT NULL DEFAULT x''\n"
	") STRICT;\n"
	"CREATE UNIQUE INDEX txn_name ON txn(name)\n"
	"	WHERE name IS NOT NULL AND state <> 'pruned';\n"

	"CREATE INDEX txn_unfinished ON txn(id)\n"
	"	WHERE state IN ('committing', 'undoing');\n"

	"CREATE TABLE layer(\n"
	"	txn INTEGER NOT NULL REFERENCES txn(id) ON DELETE CASCADE,\n"
	"	seq INTEGER NOT NULL CHECK(seq >= 0),\n"
	"	kind TEXT NOT NULL CHECK(kind IN ('overlay', 'scratch')),\n"
	"	host BLOB NOT NULL,\n"
	"	dir BLOB NOT NULL,\n"
	"	lax_owner INTEGER NOT NULL CHECK(lax_owner IN (0, 1)),\n"
	"	PRIMARY KEY(txn, seq)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE effect(\n"
	"	txn INTEGER NOT NULL REFERENCES txn(id) ON DELETE CASCADE,\n"
	"	seq INTEGER NOT NULL CHECK(seq >= 0),\n"
	"	kind TEXT NOT NULL CHECK(kind <> ''),\n"
	"	what BLOB NOT NULL,\n"
	"	PRIMARY KEY(txn, seq)\n"
	") STRICT, WITHOUT ROWID;\n"

	"CREATE TABLE op(\n"
	"	id INTEGER PRIMARY KEY AUTOINCREMENT CHECK(id > 0),\n"
	"	txn INTEGER NOT NULL REFERENCES txn(id) ON DELETE CASCADE,\n"
	"	kind TEXT NOT NULL CHECK(kind IN ('commit', 'rollback', 'undo', 'redo')),\n"
	"	state TEXT NOT NULL\n"
	"		CHECK(state IN ('applying', 'reversing', 'done', 'reversed')),\n"
	"	target INTEGER NOT NULL DEFAULT 0,\n"
	"	undone INTEGER NOT NULL DEFAULT 0 CHECK(undone IN (0, 1, 2)),\n"
	"	plan TEXT,\n"
	"	changes INTEGER NOT NULL DEFAULT 0,\n"
	"	before TEXT NOT NULL REFERENCES state(name),\n"
	"	after TEXT NOT NULL REFERENCES state(name),\n"
	"	begun_ns INTEGER NOT NULL,\n"
	"	done_ns INTEGER NOT NULL DEFAULT 0,\n"
	"	message BLOB\n"
	") STRICT;\n"
	"CREATE INDEX op_txn ON op(txn);\n",

	/* 1 -> 2: transactions that must never be left for a person to decide about */
	"ALTER TABLE txn ADD COLUMN atomic INTEGER NOT NULL DEFAULT 0\n"
	"	CHECK(atomic IN (0, 1));\n"
	"CREATE INDEX txn_atomic ON txn(id) WHERE atomic = 1;\n",

	/* 2 -> 3: by which policy its commands were judged */
	"ALTER TABLE txn ADD COLUMN policy TEXT;\n",

	/* 3 -> 4: checkpoints */
	"CREATE TABLE checkpoint(\n"
	"	txn INTEGER NOT NULL REFERENCES txn(id) ON DELETE CASCADE,\n"
	"	seq INTEGER NOT NULL CHECK(seq > 0),\n"
	"	time_ns INTEGER NOT NULL,\n"
	"	cause TEXT NOT NULL CHECK(cause <> ''),\n"
	"	target INTEGER NOT NULL DEFAULT -1,\n"
	"	named INTEGER NOT NULL CHECK(named IN (0, 1)),\n"
	"	command BLOB,\n"
	"	note BLOB,\n"
	"	added INTEGER NOT NULL,\n"
	"	modified INTEGER NOT NULL,\n"
	"	deleted INTEGER NOT NULL,\n"
	"	bytes INTEGER NOT NULL,\n"
	"	PRIMARY KEY(txn, seq)\n"
	") STRICT, WITHOUT ROWID;\n"
	/* Where a transaction goes back to if who is changing it does not come to an end. */
	"CREATE TABLE changing(\n"
	"	txn INTEGER PRIMARY KEY NOT NULL REFERENCES txn(id) ON DELETE CASCADE,\n"
	"	back_to INTEGER NOT NULL CHECK(back_to >= 0)\n"
	") STRICT;\n",

	/* 4 -> 5: the few that are still there, among all that ever were */
	"CREATE INDEX txn_kept ON txn(id) WHERE state <> 'pruned';\n",

	/*
	 * 5 -> 6: undo of a part is about its commit, too, and each undo knows whether it was
	 * taken back. Of one that was, or was not, before this it is told by what became of
	 * its commit; one of a part had no commit to tell by, and stays as it is.
	 */
	"ALTER TABLE op ADD COLUMN part INTEGER NOT NULL DEFAULT 0\n"
	"	CHECK(part IN (0, 1));\n"
	"ALTER TABLE op ADD COLUMN redone INTEGER NOT NULL DEFAULT 0\n"
	"	CHECK(redone IN (0, 1, 2));\n"
	"UPDATE op SET part = (target = 0), redone = CASE\n"
	"	WHEN target = 0 THEN 2\n"
	"	WHEN EXISTS(SELECT 1 FROM op n WHERE n.kind = 'undo' AND n.state = 'done'\n"
	"		AND n.target = op.target AND n.id > op.id) THEN 1\n"
	"	ELSE coalesce((SELECT CASE t.undone WHEN 0 THEN 1 WHEN 1 THEN 0 ELSE 2 END\n"
	"		FROM op t WHERE t.id = op.target), 2)\n"
	"	END WHERE kind = 'undo' AND state = 'done';\n",
};

/* The format this program writes (user_version). */
#define JOURNAL_FORMAT ((int)(sizeof(journal_steps) / sizeof(journal_steps[0])))

#endif
