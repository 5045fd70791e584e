-- The tables of the example site: news, and the comments of its readers.
--
-- Times are UTC. A news without `published` is a draft. `fill.php` runs this file; it does
-- no harm to tables that are there already.

CREATE TABLE IF NOT EXISTS news (
    id        INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    topic     VARCHAR(40)  NOT NULL,
    title     VARCHAR(200) NOT NULL,
    summary   VARCHAR(500) NOT NULL,
    body      TEXT         NOT NULL,
    author    VARCHAR(80)  NOT NULL,
    published DATETIME     NULL,
    KEY published (published, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

CREATE TABLE IF NOT EXISTS comments (
    id      INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    news_id INT UNSIGNED NOT NULL,
    author  VARCHAR(80)  NOT NULL,
    body    TEXT         NOT NULL,
    written DATETIME     NOT NULL,
    KEY of_news (news_id, id),
    KEY written (written, id),
    CONSTRAINT comments_of_news FOREIGN KEY (news_id) REFERENCES news (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
