/* SQLite: inserts, groups, a join, updates and deletes in memory. */
#include "sqlite3.h"
#include <stdio.h>
#include <stdlib.h>

static sqlite3 *database;

static void run(const char *query)
{
    char *error = 0;
    if (sqlite3_exec(database, query, 0, 0, &error) != SQLITE_OK) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

int main(int count, char **arguments)
{
    int rows = count > 1 ? atoi(arguments[1]) : 1000;
    char query[200];
    sqlite3_open(":memory:", &database);
    run("create table t(a integer primary key, b int, c text); create index i on t(b); begin");
    for (int i = 0; i < rows; i++) {
        snprintf(query, sizeof query, "insert into t(b, c) values(%d, 'name%d')", i * 7919 % 1000,
                 i % 97);
        run(query);
    }
    run("commit");
    run("select b, count(*), max(c) from t group by b having count(*) > 3 order by 2 desc");
    run("select sum(x.a) from t x join t y on x.b = y.b where y.c like '%e1%' and x.a < 2000");
    run("update t set b = b + 1 where c glob 'name[0-4]*'; delete from t where a % 3 = 0");
    puts("ok");
}
