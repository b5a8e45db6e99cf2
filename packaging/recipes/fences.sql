-- Fences in PostgreSQL: one table, and one statement in front of what a unit protects.
-- docs/guides/fences.md explains it; `cargo xtask recipes` tries it on a real server.

CREATE TABLE IF NOT EXISTS quorate_fences (
    unit  text PRIMARY KEY,
    fence bigint NOT NULL
);

-- Admits whoever says this fence of this unit, or fails, and with it the transaction. The row stays
-- locked until the end of that: a later holder waits for whoever was admitted, and an earlier one is
-- refused from then on.
CREATE OR REPLACE FUNCTION quorate_admit(the_unit text, the_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO quorate_fences AS seen VALUES (the_unit, the_fence)
    ON CONFLICT (unit) DO UPDATE SET fence = EXCLUDED.fence WHERE seen.fence <= EXCLUDED.fence;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fence % of unit % is too late: nothing changed', the_fence, the_unit
            USING ERRCODE = 'QF001', HINT = 'Stop, and claim again.';
    END IF;
END
$$;
