"""The statements of SQL scripts: all that may run, and nothing of what decides that."""

from __future__ import annotations

from spark_events.spark.sql_scripts import statements_of_file

SCRIPT = """select 1; -- begin
begin
  declare n int default 0;
  create table t as select case when id > 1 then 2 else 3 end c from a;
  if n = 0 then insert into p select 'end; if' from b; elseif n = 1 then
     insert into q select 1;
  else delete from x;
  end if;
  again: while n < 3 do
    set n = n + 1;
    insert into r select * from p;
  end while again;
  for each as select * from z do insert into y values (1); end for;
  case n when 1 then insert into s select 1; else insert into u select 2; end case;
  repeat set n = n - 1; until n < 0 end repeat;
  begin create table if not exists v (a int); end;
end;
drop table if exists begin_x;
select case when a then 1 end from t;
BEGIN insert into one select 2; END;
begin transaction;
if"""


def test_statements() -> None:
    assert [(each.line, each.text.partition(" from ")[0]) for each in statements_of_file(SCRIPT)] == [
        (1, "select 1"),
        (3, "declare n int default 0"),
        (4, "create table t as select case when id > 1 then 2 else 3 end c"),
        (5, "insert into p select 'end; if'"),
        (6, "insert into q select 1"),
        (7, "delete"),
        (10, "set n = n + 1"),
        (11, "insert into r select *"),
        (13, "insert into y values (1)"),
        (14, "insert into s select 1"),
        (14, "insert into u select 2"),
        (15, "set n = n - 1"),
        (16, "create table if not exists v (a int)"),
        (18, "drop table if exists begin_x"),
        (19, "select case when a then 1 end"),
        (20, "insert into one select 2"),
        (21, "begin transaction"),
        (22, "if"),
    ]


def test_quoted_words_and_comments_decide_nothing() -> None:
    """Not what looks like THEN in a text, nor like END in a comment within a comment."""
    script = "begin if x = ' then ' then insert into a select 1; end if; /* /* end */ end */ insert into b select 2; end; select 3"
    assert [each.text for each in statements_of_file(script)] == [
        "insert into a select 1",
        "insert into b select 2",
        "select 3",
    ]
